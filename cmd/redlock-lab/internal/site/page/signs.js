// What the signs of the scene and of the timeline mean.

import { html } from './vendor/htm-preact.js';

const requests = [['A', 'acquire'], ['Q', 'join the queue'], ['E', 'extend'], ['R', 'release, or take back'], ['D', 'leave the queue'], ['L', 'keep for a while']];
const votes = [['granted', '✓', 'granted'], ['refused', '✕', 'refused: somebody has the key'], ['failed', '?', 'failed: no usable answer']];
const marks = [
  ['▼', 'something that was done'],
  ['∅', 'a master forgot'],
  ['▨', 'a client waits, or a master hangs'],
  ['❙ ❙', 'a cut link: requests stop below, replies above'],
];

export function Signs() {
  return html`<details class="signs"><summary>What the signs mean</summary>
    <dl>
      ${requests.map(([sign, what]) => html`<div><dt><span class="request">${sign}</span></dt><dd>${what}</dd></div>`)}
      ${votes.map(([vote, sign, what]) => html`<div><dt class="votes"><i class=${vote}>${sign}</i></dt><dd>${what}</dd></div>`)}
      ${marks.map(([sign, what]) => html`<div><dt>${sign}</dt><dd>${what}</dd></div>`)}
    </dl>
    <p class="faint">Requests have the colour of their client. Click a link to cut it or slow it down.</p>
  </details>`;
}
