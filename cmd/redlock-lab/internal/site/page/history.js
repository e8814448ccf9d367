// What a run has shown so far: the state of each entity at any time, the events, and the violations.

import { Messages } from './messages.js';

// lastAt returns the index of the last item at or before a time, or -1. Items are in order of time.
export function lastAt(items, at) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const none = [];

export class History {
  constructor() {
    this.begin = null; // the run's settings
    this.states = new Map(); // "master 1", "link 1 2" … → its states in order of time
    this.events = []; // {at, event, line}
    this.grants = []; // the events of locks that were granted
    this.violations = [];
    this.errors = [];
    this.over = null;
    this.generated = 0; // nanoseconds up to which lines are complete
    this.lines = 0;
    this.messages = new Messages((message, at) => this.stop(message, at));
  }

  // read adds whole lines.
  read(text) {
    for (const line of text.split('\n')) {
      if (line !== '') this.add(JSON.parse(line));
    }
  }

  add(line) {
    this.lines++;
    switch (line.kind) {
      case 'begin': this.begin = line; break;
      case 'error': this.errors.push(line.text); break;
      case 'master': this.put(`master ${line.node}`, line); break;
      case 'client': this.put(`client ${line.client}`, line); break;
      case 'link': this.put(`link ${line.client} ${line.node}`, line); break;
      case 'resource': this.put('resource', line); break;
      case 'sent': this.messages.sent(line); break;
      case 'arrived': this.messages.ended(line, false); break;
      case 'gone': this.messages.ended(line, true); break;
      case 'event': {
        const entry = { at: line.event.at, event: line.event, line: line.line };
        this.insert(this.events, entry);
        if (line.event.kind === 'granted') this.insert(this.grants, entry);
        break;
      }
      case 'violation': this.insert(this.violations, line); break;
      case 'over': this.over = line; break;
      default: break; // a line that a later module may write
    }
  }

  put(name, state) {
    const states = this.states.get(name);
    if (states === undefined) this.states.set(name, [state]);
    else this.insert(states, state);
  }

  // insert keeps the order of time. Lines nearly always come in it.
  insert(items, item) {
    if (items.length === 0 || items[items.length - 1].at <= item.at) items.push(item);
    else items.splice(lastAt(items, item.at) + 1, 0, item);
  }

  state(name, at) {
    const states = this.states.get(name);
    if (states === undefined) return null;
    return states[lastAt(states, at)] || null;
  }

  all(name) {
    return this.states.get(name) || none;
  }

  master(node, at) {
    return this.state(`master ${node}`, at);
  }

  client(client, at) {
    return this.state(`client ${client}`, at);
  }

  link(client, node, at) {
    return this.state(`link ${client} ${node}`, at);
  }

  // stop returns what stops a message that is due at a time; see Messages.
  stop({ client, node, request }, at) {
    const link = this.link(client, node, at);
    if (link && (request ? link.ask : link.answer)) return 'cut';
    if (request) return this.master(node, at)?.hung ? 'deaf' : '';
    const receiver = this.client(client, at);
    return receiver && (receiver.paused || receiver.suspended) ? 'deaf' : '';
  }

  resource(at) {
    return this.state('resource', at);
  }

  get nodes() {
    return this.begin ? this.begin.nodes : 0;
  }

  get clients() {
    return this.begin ? this.begin.clients : 0;
  }

  // granted returns how many locks had been granted by then.
  granted(at) {
    return lastAt(this.grants, at) + 1;
  }

  // upTo returns the events at or before a time.
  upTo(at) {
    return this.events.slice(0, lastAt(this.events, at) + 1);
  }

  // nextEvent returns the time of the first event after a time, or null.
  nextEvent(at) {
    const next = this.events[lastAt(this.events, at) + 1];
    return next ? next.at : null;
  }

  violationsUpTo(at) {
    return this.violations.slice(0, lastAt(this.violations, at) + 1);
  }
}
