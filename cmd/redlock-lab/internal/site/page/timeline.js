// The timeline: a lane for each client and each master, and the playhead on it. It is a slider.

import { lastAt } from './history.js';
import { ms } from './address.js';
import { Lanes } from './lanes.js';
import * as words from './words.js';

const shownAt1 = 15e9; // nanoseconds that the timeline shows at real time
const ahead = 0.86; // where the playhead stays when the timeline follows it
const every = 60; // milliseconds between two drawings while it plays

export class Timeline {
  constructor(root, player) {
    this.root = root;
    this.player = player;
    this.lanes = new Lanes(root.querySelector('canvas'));
    this.head = root.querySelector('.head');
    this.from = 0;
    this.span = shownAt1;
    this.shown = { from: 0, span: shownAt1 }; // what is drawn
    this.zoom = 1;
    this.isAll = false;
    this.drawn = '';
    this.last = 0;
    this.dragging = false;
    new ResizeObserver(() => this.resize()).observe(root);
    root.addEventListener('pointerdown', (e) => this.grab(e));
    root.addEventListener('pointermove', (e) => { if (this.dragging) this.drag(e); });
    for (const end of ['pointerup', 'pointercancel']) root.addEventListener(end, () => { this.dragging = false; });
    root.addEventListener('keydown', (e) => this.key(e));
  }

  show(begin, actions) {
    this.lanes.show(begin, actions);
    this.resize();
  }

  resize() {
    this.lanes.theme();
    this.root.style.height = `${this.lanes.height}px`;
    this.width = this.root.clientWidth;
    this.lanes.resize(this.width);
    this.drawn = '';
  }

  theme() {
    this.lanes.theme();
    this.drawn = '';
  }

  zoomBy(factor) {
    this.isAll = false;
    this.zoom = Math.min(1000, Math.max(0.01, this.zoom * factor));
  }

  all() { this.isAll = !this.isAll; }

  // frame moves the view after the playhead and draws if there is something new.
  frame(history, at, real) {
    const { lanes } = this;
    const speed = this.player.speed;
    const wanted = this.isAll
      ? Math.max(history.generated * 1.04, 1e9)
      : Math.max(1e5, Math.min(shownAt1 * speed * this.zoom, Math.max(shownAt1 * Math.min(1, speed * this.zoom), history.generated * 1.04)));
    if (!this.dragging) {
      this.span += (wanted - this.span) * (Math.abs(wanted - this.span) < wanted * 0.01 ? 1 : 0.16);
      if (this.isAll) this.from = 0;
      else if (at > this.from + this.span * ahead) this.from = at - this.span * ahead;
      else if (at < this.from + this.span * 0.02) this.from = Math.max(0, at - this.span * 0.4);
    }
    this.draw(history, at, real);
    const inner = this.width - lanes.left - lanes.right;
    const x = lanes.left + ((at - this.shown.from) / this.shown.span) * inner;
    this.head.style.transform = `translateX(${Math.max(0, x).toFixed(1)}px)`;
    this.tell(history, at, real);
  }

  draw(history, at, real) {
    if (real - this.last < every) return;
    const drawn = `${this.from} ${this.span} ${history.generated} ${history.lines} ${this.player.isPlaying ? 0 : at} ${this.width}`;
    if (drawn !== this.drawn) {
      this.last = real;
      this.drawn = drawn;
      this.shown = { from: this.from, span: this.span };
      this.lanes.draw(history, this.from, this.span, at);
    }
  }

  // tell keeps what a screen reader hears of the slider, once a second.
  tell(history, at, real) {
    if (real - (this.told || 0) < 1000 && this.player.isPlaying) return;
    const now = Math.round(at / ms);
    if (now === this.toldAt) return;
    this.told = real;
    this.toldAt = now;
    this.root.setAttribute('aria-valuemax', String(Math.round(history.generated / ms)));
    this.root.setAttribute('aria-valuenow', String(now));
    this.root.setAttribute('aria-valuetext', `${words.moment(at)} of ${words.moment(history.generated)}`);
  }

  timeAt(event) {
    const inner = this.width - this.lanes.left - this.lanes.right;
    const x = event.clientX - this.root.getBoundingClientRect().left - this.lanes.left;
    return this.from + (x / inner) * this.span;
  }

  grab(event) {
    this.dragging = true;
    try { this.root.setPointerCapture(event.pointerId); } catch { /* the pointer is gone */ }
    this.drag(event);
  }

  drag(event) {
    this.player.pause();
    this.player.seek(this.timeAt(event));
  }

  key(event) {
    const { player } = this;
    const steps = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.25, PageUp: 0.25 };
    let to = null;
    if (event.key in steps) to = player.at + steps[event.key] * this.span;
    else if (event.key === 'Home') to = 0;
    else if (event.key === 'End') to = player.history.generated;
    if (to === null) return;
    event.preventDefault();
    player.pause();
    player.seek(to);
  }
}

// between calls f with each state of a list that is visible, and when it ends. States that are
// narrower than a pixel are passed over.
export function between(items, from, to, pixel, end, f) {
  let i = Math.max(0, lastAt(items, from));
  while (i < items.length && items[i].at < to) {
    const state = items[i];
    const until = i + 1 < items.length ? items[i + 1].at : end;
    f(state, Math.max(state.at, from), Math.min(until, to));
    i = until - state.at < pixel ? Math.max(i + 1, lastAt(items, state.at + pixel)) : i + 1;
  }
}
