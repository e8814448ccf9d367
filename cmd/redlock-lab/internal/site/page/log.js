// The events in words, as a table. It is rendered only while it is open.

import { html } from './vendor/htm-preact.js';
import * as words from './words.js';

const most = 150; // rows

export function Log({ history, at, open, minor, toggle, toggleMinor, seek }) {
  let rows = null;
  if (open) {
    rows = [];
    const events = history.upTo(at);
    for (let i = events.length - 1; i >= 0 && rows.length < most; i--) {
      if (minor || !words.isMinor(events[i].event)) rows.push(events[i]);
    }
  }
  return html`<details class="log" open=${open} onToggle=${(e) => toggle(e.currentTarget.open)}>
    <summary>Events in words</summary>
    <label class="check"><input type="checkbox" checked=${minor} onChange=${(e) => toggleMinor(e.currentTarget.checked)} /> each vote, and what masters store</label>
    <div class="log-rows" tabindex="0" role="region" aria-label="Events, newest first"><table>
      <thead><tr><th scope="col">Time</th><th scope="col">Event</th></tr></thead>
      <tbody>${rows && rows.map((row, i) => html`<tr key=${rows.length - i}>
        <td><button type="button" class="time" title="Go to this time" onClick=${() => seek(row.at)}>${words.moment(row.at, 1e9)}</button></td>
        <td>${words.event(row.event)}</td></tr>`)}</tbody>
    </table></div>
  </details>`;
}
