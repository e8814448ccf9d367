// Play, step, speed and zoom; the links to this run; light and dark.

import { html } from './vendor/htm-preact.js';
import { speeds } from './player.js';
import { isDark } from './theme.js';
import * as words from './words.js';

const icons = {
  play: html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M4 2.5v11l9-5.5z" /></svg>`,
  pause: html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z" /></svg>`,
  step: html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2.5 2.5v11l7.5-5.5zM11 2.5h2.5v11H11z" /></svg>`,
  restart: html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2.5 2.5H5v11H2.5zM13.5 2.5v11L6 8z" /></svg>`,
};

export function Transport({ page }) {
  const { player } = page;
  const index = speeds.indexOf(player.speed);
  const isOver = page.lab.isOver && player.at >= player.history.generated;
  const lags = player.isPlaying && player.realSpeed < player.speed * 0.8;
  return html`
    <div class="row">
      <button type="button" class="primary round" data-do="play" aria-label=${player.isPlaying ? 'Pause' : 'Play'} title="Space plays and pauses" onClick=${() => page.toggle()}>${player.isPlaying ? icons.pause : icons.play}</button>
      <button type="button" class="round" data-do="step" aria-label="Step to the next event" title="Step to the next event" onClick=${() => player.step()}>${icons.step}</button>
      <button type="button" class="round" data-do="rewind" aria-label="Back to the start" title="Back to the start" onClick=${() => player.seek(0)}>${icons.restart}</button>
      <output class="clock" id="clock" aria-label="Virtual time"></output>
    </div>
    <div class="row speed">
      <label for="speed">Speed</label>
      <input id="speed" type="range" min="0" max=${speeds.length - 1} step="1" value=${index} aria-valuetext=${`${words.speed(player.speed)} real time`}
        onInput=${(e) => page.setSpeed(speeds[Number(e.currentTarget.value)])} />
      <output for="speed">${words.speed(player.speed)}</output>
      <span class="lag">${isOver ? 'The run ends here.' : lags ? `really ${words.realSpeed(player.realSpeed)}` : ''}</span>
    </div>
    <div class="row zoom">
      <button type="button" aria-label="Zoom out of the timeline" onClick=${() => page.timeline.zoomBy(2)}>−</button>
      <button type="button" aria-label="Zoom into the timeline" onClick=${() => page.timeline.zoomBy(0.5)}>+</button>
      <button type="button" aria-label="All of the timeline" aria-pressed=${page.timeline.isAll} onClick=${() => { page.timeline.all(); page.changed(); }}>All</button>
    </div>`;
}

export function Tools({ page, copied }) {
  const button = (what, label, text) => html`<button type="button" class="quiet" data-do=${what} onClick=${() => page.copy(what, text())}>${copied === what ? 'Copied' : label}</button>`;
  const dark = isDark();
  return html`
    ${button('copy-link', 'Copy link', () => location.href)}
    ${button('copy-command', 'Copy as command', () => page.command())}
    <button type="button" class="quiet" data-do="theme" onClick=${() => page.theme()}>${dark ? 'Light' : 'Dark'}</button>`;
}
