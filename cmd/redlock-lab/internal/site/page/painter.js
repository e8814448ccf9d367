// The drawing of links and messages. Links change seldom and have a canvas of their own.

import { Sprites } from './sprites.js';

const edge = 26; // pixels between the end of a link and the edge of the canvas when there are labels
const reach = matchMedia('(pointer: coarse)').matches ? 18 : 9; // pixels from a link at which it is pointed at
const glow = 300e6; // nanoseconds of real time for which a message that has arrived fades

export class Painter {
  constructor(still, moving) {
    this.still = still;
    this.moving = moving;
    this.lines = still.getContext('2d');
    this.dots = moving.getContext('2d');
    this.sprites = new Sprites();
    this.pointed = null;
    this.drawn = '';
  }

  theme() {
    this.sprites = new Sprites();
    this.drawn = this.shown = '';
  }

  measure(width, height, masters, clients) {
    const scale = window.devicePixelRatio || 1;
    for (const canvas of [this.still, this.moving]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.getContext('2d').setTransform(scale, 0, 0, scale, 0, 0);
    }
    Object.assign(this, { width, height, masters, clients, drawn: '' });
    this.measured = (this.measured || 0) + 1;
    this.top = masters.labels ? edge : 0;
    this.bottom = height - (clients.labels ? edge : 0);
  }

  // ends returns where the link from a client to a master begins and ends. Links fan out at both.
  ends(client, node) {
    const fan = (i, count) => (i - (count + 1) / 2) * Math.min(7, 44 / count);
    return {
      x0: this.clients.at[client - 1] + fan(node, this.masters.at.length), y0: this.bottom,
      x1: this.masters.at[node - 1] + fan(client, this.clients.at.length), y1: this.top,
    };
  }

  draw(history, at, speed, calm) {
    this.drawLinks(history, at);
    const shown = `${at} ${speed} ${history.lines} ${this.measured}`;
    if (shown === this.shown) return;
    this.shown = shown;
    const { dots, width, height } = this;
    if (!this.isEmpty) dots.clearRect(0, 0, width, height);
    this.isEmpty = true;
    const after = Math.min(glow * speed, 1e9);
    history.messages.each(at, after, (message, way, ago, stop) => {
      if (ago >= 0 && message.what === 'info') return;
      const { x0, y0, x1, y1 } = this.ends(message.client, message.node);
      let place = message.request ? way : 1 - way;
      if (stop === 'cut') place = message.request ? 0.4 : 0.6;
      else if (calm) place = message.request ? 0.3 : 0.7;
      else if (message.lost && way > 0.5) place = 0.5;
      const x = x0 + (x1 - x0) * place;
      const y = Math.min(height - 9, Math.max(9, y0 + (y1 - y0) * place));
      const alpha = ago < 0 ? (message.lost && way > 0.5 ? 1 - way : 1) : Math.max(0, 1 - ago / after) * (message.request ? 0.35 : 0.9);
      if (alpha <= 0.02) return;
      this.isEmpty = false;
      dots.globalAlpha = alpha;
      this.sprites.put(dots, message, x, y);
    });
    dots.globalAlpha = 1;
  }

  // drawLinks draws only if a link has changed.
  drawLinks(history, at) {
    const clients = this.clients.at.length;
    const nodes = this.masters.at.length;
    let drawn = `${this.pointed}`;
    const states = [];
    for (let c = 1; c <= clients; c++) {
      for (let n = 1; n <= nodes; n++) {
        const s = history.link(c, n, at);
        const m = history.master(n, at);
        const down = m !== null && (!m.up || m.hung);
        states.push({ c, n, s, down });
        drawn += `|${down ? 'd' : ''}${s ? `${s.ask ? 1 : 0}${s.answer ? 1 : 0}${s.loses ? 1 : 0}${s.refused ? 1 : 0}${s.slow}` : ''}`;
      }
    }
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.lines.clearRect(0, 0, this.width, this.height);
    for (const state of states) this.drawLink(state);
    for (const state of states) this.drawTag(state, nodes);
    this.drawLabels(this.masters, 'M', 15);
    this.drawLabels(this.clients, 'C', this.height - 15);
  }

  drawLink({ c, n, s, down }) {
    const { lines, sprites } = this;
    const { x0, y0, x1, y1 } = this.ends(c, n);
    const point = this.pointed === `c${c}-m${n}`;
    const cut = s && (s.ask || s.answer);
    lines.strokeStyle = point ? sprites.ink : sprites.line;
    lines.globalAlpha = point ? 1 : down ? 0.45 : 1;
    lines.lineWidth = point ? 2 : 1;
    lines.setLineDash(down || (s && s.refused) ? [2, 5] : s && s.slow ? [8, 4] : []);
    const at = (f) => [x0 + (x1 - x0) * f, y0 + (y1 - y0) * f];
    lines.beginPath();
    lines.moveTo(...at(0));
    if (cut) {
      lines.lineTo(...at(0.47));
      lines.moveTo(...at(0.53));
    }
    lines.lineTo(...at(1));
    lines.stroke();
    lines.setLineDash([]);
    lines.globalAlpha = 1;
    if (cut) this.drawCut(at, Math.atan2(y1 - y0, x1 - x0), s);
  }

  // drawTag names what a link does to messages, at different heights so that tags do not meet.
  drawTag({ c, n, s }, nodes) {
    if (!s || s.ask || s.answer || (!s.loses && !s.slow)) return;
    const { x0, y0, x1, y1 } = this.ends(c, n);
    const f = 0.34 + (0.36 * (n - 1)) / Math.max(1, nodes - 1);
    this.tag([x0 + (x1 - x0) * f, y0 + (y1 - y0) * f], s.loses ? 'loses' : `+${Math.round(s.slow / 1e6)} ms`);
  }

  // drawCut draws a bar across the link: on the client's side if requests are held, on the master's if replies are.
  drawCut(at, angle, s) {
    const { lines, sprites } = this;
    lines.strokeStyle = sprites.ink;
    lines.lineWidth = 2.5;
    const bar = ([x, y]) => {
      const dx = Math.sin(angle) * 7;
      const dy = -Math.cos(angle) * 7;
      lines.beginPath();
      lines.moveTo(x - dx, y - dy);
      lines.lineTo(x + dx, y + dy);
      lines.stroke();
    };
    if (s.ask) bar(at(0.47));
    if (s.answer) bar(at(0.53));
  }

  tag([x, y], text) {
    const { lines, sprites } = this;
    lines.font = `600 11px ${sprites.font}`;
    lines.textAlign = 'center';
    lines.textBaseline = 'middle';
    const half = lines.measureText(text).width / 2 + 5;
    lines.fillStyle = sprites.paper;
    lines.fillRect(x - half, y - 9, 2 * half, 18);
    lines.fillStyle = sprites.ink;
    lines.fillText(text, x, y);
  }

  drawLabels(ends, letter, y) {
    if (!ends.labels) return;
    const { lines, sprites } = this;
    lines.font = `600 12px ${sprites.font}`;
    lines.textAlign = 'center';
    lines.textBaseline = 'middle';
    ends.at.forEach((x, i) => {
      if (letter === 'C') {
        lines.fillStyle = sprites.paint(i + 1);
        lines.beginPath();
        lines.roundRect(x - 14, y - 10, 28, 20, 6);
        lines.fill();
      }
      lines.fillStyle = letter === 'C' ? sprites.onPaint(i + 1) : sprites.ink;
      lines.fillText(`${letter}${i + 1}`, x, y);
    });
  }

  point(link) {
    if (link !== this.pointed) this.pointed = link;
  }

  // linkAt returns the link nearest to a place, or null.
  linkAt(x, y) {
    if (!this.clients) return null;
    let nearest = null;
    let least = reach;
    for (let c = 1; c <= this.clients.at.length; c++) {
      for (let n = 1; n <= this.masters.at.length; n++) {
        const { x0, y0, x1, y1 } = this.ends(c, n);
        const dx = x1 - x0;
        const dy = y1 - y0;
        const f = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy)));
        const distance = Math.hypot(x0 + f * dx - x, y0 + f * dy - y);
        if (distance < least) {
          least = distance;
          nearest = `c${c}-m${n}`;
        }
      }
    }
    return nearest;
  }
}
