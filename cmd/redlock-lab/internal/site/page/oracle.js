// What the rules say: the first violation, or what was checked so far.

import { html } from './vendor/htm-preact.js';
import { Who } from './cards.js';
import * as words from './words.js';

const titles = {
  exclusion: 'Two clients hold the lock',
  'stale write': 'A stale write was accepted',
  fencing: 'A token did not grow',
  context: 'A context outlived its lock',
  semaphore: 'Too many clients are in',
};

// remedy returns what would have prevented a violation, as settings to try again with.
function remedy(violation, settings, forgot) {
  if (Number(settings.slots || 0) > 0) return { name: 'the lock', settings: { slots: '0' } };
  if (violation.rule === 'stale write' && !settings.fencing) return { name: 'Fencing', settings: { fencing: '1' } };
  if (violation.rule !== 'stale write' && forgot && !settings.guard) return { name: 'RestartGuard', settings: { guard: '1' } };
  return null;
}

export function Violation({ violation, settings, forgot, isSim, again, goOn }) {
  const fix = isSim ? null : remedy(violation, settings, forgot);
  return html`<section class="violation" role="alertdialog" aria-labelledby="violation-title" aria-describedby="violation-text" tabindex="-1">
    <div class="verdict">
      <p class="rule">Rule broken: ${violation.rule}</p>
      <h2 id="violation-title">${titles[violation.rule] || 'A rule is broken'}</h2>
    </div>
    <div id="violation-text" class="why">
      ${violation.locks?.length > 0 && html`<ul class="believers">${violation.locks.map((lock) => html`<li key=${`${lock.client} ${lock.op}`}>
        <${Who} client=${lock.client} /> client ${lock.client}: ${words.moment(lock.from)} to ${words.moment(lock.until)}</li>`)}</ul>`}
      ${violation.excused && html`<p><b>Redlock does not promise this.</b> ${violation.excused}</p>`}
      ${violation.remedy && html`<p><b>What helps.</b> ${violation.remedy}</p>`}
      <p class="exact">${words.rounded(violation.text)}</p>
    </div>
    <div class="choices">
      ${fix && html`<button type="button" class="primary" data-do="again" onClick=${() => again(fix, violation)}>Try again with ${fix.name}</button>`}
      <button type="button" data-do="go-on" onClick=${goOn}>Go on</button>
    </div>
  </section>`;
}

// Checked says what no rule found wrong up to the playhead.
export function Checked({ history, at, fencing, slots }) {
  const granted = history.granted(at);
  const violations = history.violationsUpTo(at);
  const over = history.over && at >= history.generated ? history.over : null;
  const rules = over?.checked || [
    slots ? `At most ${words.plural(slots, 'client')} held a slot.` : 'No two clients held the key at once.',
    'No context was alive after its lock had ended.',
    ...(fencing ? ['Tokens grew from lock to lock.'] : []),
    'No write with an old token was accepted after a newer one.',
  ];
  return html`<section class="checked" aria-labelledby="checked-title">
    <h2 id="checked-title">${violations.length > 0 ? words.plural(violations.length, 'violation') : 'No violation so far'}</h2>
    <p class="faint">${words.plural(over ? over.granted : granted, 'lock')} judged. ${violations.length > 0 ? 'These rules are checked:' : 'Checked:'}</p>
    <ul>${rules.map((rule) => html`<li>${rule}</li>`)}</ul>
  </section>`;
}
