// The guided tours. A step has some sentences and may start a run, show a control to use, and wait
// for something to happen. Then the next step follows.

import { html } from './vendor/htm-preact.js';
import { parse } from './address.js';
import { tour as twoDie } from './tours/two-die.js';
import { tour as thirdDies } from './tours/third-dies.js';
import { tour as lateWrite } from './tours/late-write.js';
import { tour as amnesia } from './tours/amnesia.js';
import { tour as splitVote } from './tours/split-vote.js';
import { tour as clockJump } from './tours/clock-jump.js';
import { tour as semaphore } from './tours/semaphore.js';

export const tours = [twoDie, thirdDies, lateWrite, amnesia, splitVote, clockJump, semaphore];

const selector = (control) => (control.startsWith('[') ? control : `[data-act="${control}"]`);

export class Guide {
  // page has: lab, player, open(run), perform(word), changed().
  constructor(page) {
    this.page = page;
    this.tour = null;
    this.at = 0;
    this.left = []; // controls of the step that are still to be used
    document.addEventListener('click', (event) => this.clicked(event), true);
  }

  get step() {
    return this.tour && this.tour.steps[this.at];
  }

  start(name) {
    this.tour = tours.find((tour) => tour.name === name) || null;
    if (this.tour) this.enter(0);
  }

  leave() {
    this.tour = null;
    this.point();
    this.page.changed();
  }

  back() {
    // A step without a start goes on where the one before it ended, so go back to one with a start.
    let to = this.at - 1;
    while (to > 0 && !this.tour.steps[to].start) to--;
    this.enter(Math.max(0, to));
  }

  next() {
    if (this.at + 1 < this.tour.steps.length) this.enter(this.at + 1);
    else this.leave();
  }

  async enter(at) {
    this.at = at;
    const { step, page } = this;
    this.left = [...(step.use || [])];
    this.isMet = false;
    this.isEntering = true;
    page.changed();
    if (step.start) await page.open(parse(step.start));
    if (step.change) await page.open({ ...page.lab.run, settings: { ...page.lab.run.settings, ...step.change } });
    if (step !== this.step) return;
    this.isEntering = false;
    this.entered = page.player.at;
    page.setSpeed(step.speed || 1);
    // The clock stands still until the reader has done what the step asks for.
    if (this.left.length > 0) page.player.pause();
    else if (!page.isStopped()) page.player.play();
    this.point(true);
    page.changed();
  }

  // acted notes an action of the reader. Where a tour wants a client to try, it may also wait for the lock.
  acted(done) {
    const word = this.step && this.left.find((control) => control === done || control === done.replace('acquire-', 'try-'));
    if (!word) return;
    this.left = this.left.filter((control) => control !== word);
    // A button of the page does what it says; an action needs time to have an effect.
    if (this.left.length === 0 && !word.startsWith('[')) this.page.player.play();
    this.point();
    this.page.changed();
  }

  clicked(event) {
    if (!this.step) return;
    for (const control of this.left) {
      if (control.startsWith('[') && event.target.closest(control)) this.acted(control);
    }
  }

  // help does what the reader was asked to do.
  help() {
    const control = this.left[0];
    if (control.startsWith('[')) document.querySelector(control)?.click();
    else this.page.perform(control);
  }

  // look ends the step if what it waits for has happened. It is called a few times a second.
  look() {
    const { step, page } = this;
    if (!step || this.isEntering || page.lab.coming) return;
    this.point();
    if (this.left.length > 0 || !step.until || this.isMet) return;
    const view = { history: page.lab.history, at: page.player.at, from: this.entered, run: page.lab.run };
    if (!step.until(view)) return;
    this.isMet = true;
    this.next();
  }

  // point marks the control to use next.
  point(scroll = false) {
    const wanted = this.step && this.left.length > 0 ? document.querySelector(selector(this.left[0])) : null;
    const marked = wanted ? [wanted, wanted.closest('details.more')].filter(Boolean) : [];
    for (const old of document.querySelectorAll('[data-hint]')) {
      if (!marked.includes(old)) delete old.dataset.hint;
    }
    for (const element of marked) element.dataset.hint = '';
    if (scroll && wanted) (marked[1] || wanted).scrollIntoView({ block: 'nearest' });
  }
}

export function Tours({ guide }) {
  const { tour } = guide;
  if (!tour) {
    return html`<nav class="tours" aria-labelledby="tours-title"><h2 id="tours-title">Guided tours</h2>
      <p class="faint">A minute each. You break something, and see what Redlock does.</p>
      <ol>${tours.map((t) => html`<li key=${t.name}><button type="button" data-tour=${t.name} onClick=${() => guide.start(t.name)}>${t.title}</button></li>`)}</ol>
    </nav>`;
  }
  const { step } = guide;
  const last = guide.at + 1 === tour.steps.length;
  const waits = step.until && !guide.isMet;
  return html`<section class="tour" aria-labelledby="tour-title">
    <p class="faint">${tour.title}: step ${guide.at + 1} of ${tour.steps.length}</p>
    <h2 id="tour-title" tabindex="-1">${step.title}</h2>
    <div aria-live="polite">${step.text.map((text) => html`<p>${text}</p>`)}</div>
    ${guide.left.length > 0 && html`<p class="faint waits">The clock stands still until you do.</p><button type="button" class="primary" data-do="help" onClick=${() => guide.help()}>Do it for me</button>`}
    ${guide.left.length === 0 && waits && html`<p class="faint waits">Watch. The next step follows by itself.</p>`}
    <div class="row">
      <button type="button" data-do="back" disabled=${guide.at === 0} onClick=${() => guide.back()}>Back</button>
      <button type="button" data-do="next" class=${guide.left.length === 0 && !waits ? 'primary' : ''} onClick=${() => guide.next()}>${last ? 'Finish' : 'Next'}</button>
      ${!last && html`<button type="button" data-do="leave" class="quiet" onClick=${() => guide.leave()}>Leave the tour</button>`}
    </div>
  </section>`;
}
