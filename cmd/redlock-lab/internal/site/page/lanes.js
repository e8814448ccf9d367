// The drawing of the timeline's lanes.

import { lastAt } from './history.js';
import { ms } from './address.js';
import { between } from './timeline.js';
import { moment } from './words.js';

export class Lanes {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.begin = { nodes: 0, clients: 0 };
    this.actions = () => [];
    this.theme();
  }

  theme() {
    const style = getComputedStyle(document.documentElement);
    const known = new Map();
    this.value = (name) => {
      if (!known.has(name)) known.set(name, style.getPropertyValue(name).trim());
      return known.get(name);
    };
    this.rem = parseFloat(style.fontSize);
    this.font = `${0.72 * this.rem}px ${this.value('--font') || 'system-ui, sans-serif'}`;
    this.axis = 1.5 * this.rem;
    this.lane = 1.2 * this.rem;
    this.left = 5 * this.rem;
    this.right = 0.5 * this.rem;
    this.hatch = null;
  }

  get height() {
    return this.axis + (this.begin.clients + this.begin.nodes) * this.lane + this.rem;
  }

  show(begin, actions) {
    this.begin = begin;
    this.actions = actions;
  }

  resize(width) {
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  draw(history, from, span, at) {
    const c = this.context;
    const inner = this.width - this.left - this.right;
    const to = from + span;
    const view = {
      history, from, to, end: history.generated, pixel: span / inner,
      x: (time) => this.left + ((time - from) / span) * inner,
    };
    c.clearRect(0, 0, this.width, this.height);
    c.font = this.font;
    c.textBaseline = 'middle';
    this.drawAxis(view, span);
    c.save();
    c.beginPath();
    c.rect(this.left, 0, inner, this.height);
    c.clip();
    let y = this.axis;
    for (let n = 1; n <= this.begin.clients; n++, y += this.lane) this.drawClient(view, n, y);
    y += 0.4 * this.rem;
    for (let n = 1; n <= this.begin.nodes; n++, y += this.lane) this.drawMaster(view, n, y);
    this.drawMarks(view);
    const x = view.x(at);
    c.globalAlpha = 0.6; // what comes after the playhead is pale
    c.fillStyle = this.value('--paper');
    c.fillRect(x, this.axis, this.width - x, this.height);
    c.globalAlpha = 1;
    c.restore();
    this.drawNames();
  }

  drawAxis(view, span) {
    const c = this.context;
    const wanted = (span / (this.width - this.left)) * 7 * this.rem;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= wanted);
    c.textAlign = 'center';
    for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step) {
      const x = view.x(t);
      c.fillStyle = this.value('--grid');
      c.fillRect(x, this.axis - 3, 1, this.height);
      c.fillStyle = this.value('--faint');
      if (x > this.left + 1.5 * this.rem && x < this.width - 2 * this.rem) c.fillText(moment(t, step * 2), x, this.axis / 2);
    }
  }

  drawNames() {
    const c = this.context;
    c.textAlign = 'left';
    let y = this.axis + this.lane / 2;
    for (let n = 1; n <= this.begin.clients; n++, y += this.lane) {
      c.fillStyle = this.value(`--c${n}`);
      c.fillRect(0, y - this.lane * 0.3, 0.3 * this.rem, this.lane * 0.6);
      c.fillStyle = this.value('--ink');
      c.fillText(`Client ${n}`, 0.6 * this.rem, y);
    }
    y += 0.4 * this.rem;
    for (let n = 1; n <= this.begin.nodes; n++, y += this.lane) {
      c.fillStyle = this.value('--ink');
      c.fillText(`Master ${n}`, 0.6 * this.rem, y);
    }
  }

  // box fills a stretch of a lane.
  box(view, y, from, until, style, height = 0.7) {
    const c = this.context;
    const x = Math.round(view.x(from));
    c.fillStyle = style;
    c.fillRect(x, y + (this.lane * (1 - height)) / 2, Math.max(1, Math.round(view.x(until)) - x), this.lane * height);
  }

  drawClient(view, n, y) {
    const paint = this.value(`--c${n}`);
    const grey = this.value('--still');
    between(view.history.all(`client ${n}`), view.from, view.to, view.pixel, view.end, (s, from, until) => {
      const lock = (s.locks || []).reduce((last, l) => (l.context === 'alive' ? Math.max(last, l.until) : last), 0);
      if (s.state === 'dead') this.box(view, y, from, until, this.value('--line'), 0.16);
      else if (s.state === 'waiting' || s.state === 'asking') this.box(view, y, from, until, this.hatched(n), 0.5);
      if (lock > from) this.box(view, y, from, Math.min(until, lock), paint);
      if (s.paused || s.suspended) this.box(view, y, from, until, grey, 0.24);
    });
  }

  drawMaster(view, n, y) {
    const all = view.history.all(`master ${n}`);
    between(all, view.from, view.to, view.pixel, view.end, (s, from, until) => {
      if (!s.up) this.box(view, y, from, until, this.value('--down'));
      else if (s.hung) this.box(view, y, from, until, this.hatched(0), 0.7);
      else {
        this.box(view, y, from, until, this.value('--grid'), 0.12);
        for (const key of s.keys || []) {
          if (key.until > from) this.box(view, y, from, Math.min(until, key.until), this.value(`--c${key.client}`) || this.value('--faint'), 0.36);
        }
      }
    });
    for (let i = Math.max(1, lastAt(all, view.from)); i < all.length && all[i].at < view.to; i++) {
      if (all[i].forgot > (all[i - 1].forgot || 0)) this.sign(view.x(all[i].at), y + this.lane / 2, '∅');
    }
  }

  sign(x, y, text) {
    const c = this.context;
    c.textAlign = 'center';
    c.fillStyle = this.value('--paper');
    c.beginPath();
    c.arc(x, y, this.lane * 0.48, 0, 2 * Math.PI);
    c.fill();
    c.fillStyle = this.value('--ink');
    c.fillText(text, x, y);
  }

  // drawMarks draws a tick for each action of the reader, and a red line for each violation.
  drawMarks(view) {
    const c = this.context;
    for (const action of this.actions()) {
      const t = action.ms * ms;
      if (t < view.from || t > view.to) continue;
      const x = view.x(t);
      c.fillStyle = this.value('--accent');
      c.beginPath();
      c.moveTo(x - 4.5, this.axis - 7);
      c.lineTo(x + 4.5, this.axis - 7);
      c.lineTo(x, this.axis);
      c.fill();
    }
    for (const violation of view.history.violations) {
      if (violation.at < view.from || violation.at > view.to) continue;
      c.fillStyle = this.value('--alarm');
      c.fillRect(view.x(violation.at) - 1, this.axis - 7, 2, this.height);
    }
  }

  // hatched is a pattern in a client's colour; 0 is grey.
  hatched(n) {
    if (this.hatch === null) this.hatch = new Map();
    let pattern = this.hatch.get(n);
    if (pattern) return pattern;
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const c = tile.getContext('2d');
    c.strokeStyle = n ? this.value(`--c${n}`) : this.value('--down');
    c.lineWidth = 1.6;
    c.beginPath();
    for (const o of [-6, 0, 6]) {
      c.moveTo(o, 6);
      c.lineTo(o + 6, 0);
    }
    c.stroke();
    pattern = this.context.createPattern(tile, 'repeat');
    this.hatch.set(n, pattern);
    return pattern;
  }
}
