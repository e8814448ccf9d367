// What follows the playhead: components that render when their entity's state has changed, bars that
// only change their transform, and countdowns that change a few times a second.

import { Component, html } from './vendor/htm-preact.js';

const components = new Set();
const bars = new Set();
const countdowns = new Set();
const textEvery = 200; // milliseconds of real time between two texts of a countdown

let lastText = 0;

// Live renders the state of its entity at the playhead: a subclass has "show(state)".
export class Live extends Component {
  componentDidMount() { components.add(this); }

  componentWillUnmount() { components.delete(this); }

  follow(history, at) {
    const now = history.state(this.props.entity, at);
    if (now !== this.state.now) this.setState({ now });
  }

  render() { return this.show(this.state.now || null); }
}

// Bar shows how much is left until a time, of a whole.
export class Bar extends Component {
  componentDidMount() { bars.add(this); }

  componentWillUnmount() { bars.delete(this); }

  componentDidUpdate() { this.shown = -1; }

  follow(at) {
    const { until, whole } = this.props;
    const left = Math.max(0, Math.min(1, (until - at) / whole));
    if (Math.abs(left - this.shown) < 0.001) return;
    this.shown = left;
    this.element.style.transform = `scaleX(${left.toFixed(4)})`;
  }

  render() {
    return html`<span class="bar"><i ref=${(e) => { this.element = e; }}></i></span>`;
  }
}

// Countdown is a text that depends on the playhead: "text(at)".
export class Countdown extends Component {
  componentDidMount() {
    countdowns.add(this);
    this.due = true;
  }

  componentWillUnmount() { countdowns.delete(this); }

  componentDidUpdate() { this.due = true; }

  follow(at) {
    this.due = false;
    const text = this.props.text(at);
    if (text === this.shown) return;
    this.shown = text;
    this.element.textContent = text;
  }

  render() { return html`<span class="countdown" ref=${(e) => { this.element = e; }}></span>`; }
}

// follow brings everything to the playhead. "still" is true if the playhead does not move by itself.
export function follow(history, at, real, still) {
  for (const component of components) component.follow(history, at);
  for (const bar of bars) bar.follow(at);
  const due = still || real - lastText > textEvery;
  if (due) lastText = real;
  for (const countdown of countdowns) {
    if (due || countdown.due) countdown.follow(at);
  }
}
