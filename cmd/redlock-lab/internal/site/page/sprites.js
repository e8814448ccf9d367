// The signs of messages, drawn once each and then copied. A request has the client's colour and the
// letter of what it asks for. A vote has a shape of its own, so that colour alone means nothing.

const letters = { acquire: 'A', extend: 'E', release: 'R', enqueue: 'Q', dequeue: 'D', retain: 'L', wake: 'W', info: 'i' };
const marks = { granted: '✓', refused: '✕', failed: '?' };
const size = 22;

export class Sprites {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    this.value = (name) => style.getPropertyValue(name).trim();
    this.ink = this.value('--ink');
    this.line = this.value('--wire');
    this.paper = this.value('--paper');
    this.font = this.value('--font') || 'system-ui, sans-serif';
    this.made = new Map();
  }

  paint(client) { return this.value(`--c${client}`) || this.value('--faint'); }

  onPaint(client) { return this.value(`--o${client}`) || '#000'; }

  put(context, message, x, y) {
    const name = message.request || message.vote === '' ? `${message.request} ${message.client} ${message.what}` : message.vote;
    let sprite = this.made.get(name);
    if (sprite === undefined) {
      sprite = this.make(message);
      this.made.set(name, sprite);
    }
    context.drawImage(sprite, x - size / 2, y - size / 2, size, size);
  }

  make(message) {
    const scale = window.devicePixelRatio || 1;
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = Math.round(size * scale);
    const c = canvas.getContext('2d');
    c.scale(scale, scale);
    c.translate(size / 2, size / 2);
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    if (message.request || message.vote === '') this.request(c, message);
    else this.vote(c, message.vote);
    return canvas;
  }

  request(c, message) {
    const small = message.what === 'info' || message.what === 'wake' || message.vote === '' && !message.request;
    c.fillStyle = this.paint(message.client);
    c.strokeStyle = this.paper;
    c.lineWidth = 1.5;
    c.beginPath();
    c.arc(0, 0, small ? 5.5 : 8.5, 0, 2 * Math.PI);
    c.fill();
    c.stroke();
    if (small) return;
    c.fillStyle = this.onPaint(message.client);
    c.font = `700 10.5px ${this.font}`;
    c.fillText(letters[message.what] || '·', 0, 0.5);
  }

  vote(c, vote) {
    c.fillStyle = this.value(`--${vote}`);
    c.strokeStyle = this.paper;
    c.lineWidth = 1.5;
    c.beginPath();
    if (vote === 'granted') c.arc(0, 0, 8.5, 0, 2 * Math.PI);
    else if (vote === 'refused') c.rect(-7.5, -7.5, 15, 15);
    else {
      c.moveTo(0, -10);
      c.lineTo(10, 0);
      c.lineTo(0, 10);
      c.lineTo(-10, 0);
      c.closePath();
    }
    c.fill();
    c.stroke();
    c.fillStyle = this.value('--on-vote');
    c.font = `800 11px ${this.font}`;
    c.fillText(marks[vote] || '·', 0, 0.5);
  }
}
