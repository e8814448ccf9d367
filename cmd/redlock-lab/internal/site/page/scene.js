// The scene: masters above, clients below, and between them the links and the messages on them.

import { html, render } from './vendor/htm-preact.js';
import { Client, Master } from './cards.js';
import { Painter } from './painter.js';

const narrow = matchMedia('(max-width: 56rem)');
const least = 8.6; // rem that a card needs
const gap = 0.625;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

export class Scene {
  // pick is called with a link, "c1-m2", and the place where it was clicked.
  constructor(root, pick) {
    this.root = root;
    this.pick = pick;
    this.begin = null;
    this.framed = [];
    this.painter = null;
    this.resize();
    new ResizeObserver(() => this.resize()).observe(root);
    document.fonts?.ready.then(() => { this.stale = true; });
  }

  // show renders the cards of a run. Framed clients are those that a violation names.
  show(begin, framed) {
    this.begin = begin;
    this.framed = framed;
    const masters = Array.from({ length: begin.nodes }, (_, i) => i + 1);
    const clients = Array.from({ length: begin.clients }, (_, i) => i + 1);
    render(html`
      <section class="row-of masters" aria-label="Masters" style=${`--columns:${this.columns(begin.nodes)}`}>
        <h2 class="hidden">Masters</h2>
        ${masters.map((n) => html`<${Master} key=${n} n=${n} entity=${`master ${n}`} begin=${begin} />`)}
      </section>
      <div class="wires" aria-hidden="true">
        <canvas class="still"></canvas><canvas class="moving" onClick=${(e) => this.click(e)} onPointerMove=${(e) => this.hover(e)}></canvas>
      </div>
      <section class="row-of clients" aria-label="Clients" style=${`--columns:${this.columns(begin.clients)}`}>
        <h2 class="hidden">Clients</h2>
        ${clients.map((n) => html`<${Client} key=${n} n=${n} entity=${`client ${n}`} begin=${begin} framed=${framed.includes(n)} />`)}
      </section>`, this.root);
    const [still, moving] = this.root.querySelectorAll('canvas');
    if (this.painter === null) this.painter = new Painter(still, moving);
    const shape = `${begin.nodes} ${begin.clients}`;
    if (shape !== this.shape) this.stale = true;
    this.shape = shape;
  }

  resize() {
    this.stale = true;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.fit = Math.max(1, Math.floor((this.root.clientWidth / rem + gap) / (least + gap)));
    if (this.begin) this.show(this.begin, this.framed);
  }

  // columns returns in how many columns so many cards stand, in rows of about the same length.
  columns(count) {
    return Math.ceil(count / Math.ceil(count / this.fit));
  }

  // measure finds where the links begin and end. On a narrow page that is beside the cards' numbers.
  measure() {
    this.stale = false;
    const wires = this.root.querySelector('.wires');
    const box = wires.getBoundingClientRect();
    const ends = (selector, count) => {
      const cards = [...this.root.querySelectorAll(selector)];
      const oneRow = cards.every((card) => Math.abs(card.offsetTop - cards[0].offsetTop) < 4);
      if (narrow.matches || !oneRow) {
        return { labels: true, at: Array.from({ length: count }, (_, i) => (box.width * (i + 0.5)) / count) };
      }
      return { labels: false, at: cards.map((card) => { const b = card.getBoundingClientRect(); return b.left + b.width / 2 - box.left; }) };
    };
    this.painter.measure(box.width, box.height, ends('.master', this.begin.nodes), ends('.client', this.begin.clients));
  }

  // frame draws the links and messages at the playhead.
  frame(history, at, speed) {
    if (this.painter === null) return;
    if (this.stale) this.measure();
    this.painter.draw(history, at, speed, calm.matches);
  }

  theme() {
    this.painter?.theme();
    this.stale = true;
  }

  click(event) {
    const link = this.painter.linkAt(event.offsetX, event.offsetY);
    if (link) this.pick(link, event);
  }

  hover(event) {
    const link = this.painter.linkAt(event.offsetX, event.offsetY);
    event.currentTarget.style.cursor = link ? 'pointer' : '';
    this.painter.point(link);
  }
}
