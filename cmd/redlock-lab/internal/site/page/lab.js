// The lab: one run after the other in the worker, its history, and the address that makes it again.

import { History } from './history.js';
import { format, ms, parse, tick } from './address.js';

const lead = 80; // milliseconds of real time that the worker is ahead of the playhead

export class Lab {
  // tell(name, value) reports: progress, ready, broken, begin, lines, swapped, acted, error.
  constructor(tell) {
    this.tell = tell;
    this.id = 0;
    this.run = null; // {mode, sim, settings, actions}
    this.history = new History();
    this.coming = null; // the history of a replay that has not reached the playhead
    this.waiting = new Map(); // run → what to do once it stands
    this.isOver = false;
    this.asked = 0; // milliseconds
    this.acts = []; // promises of actions
    this.worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => tell('broken', event.message || 'the worker could not start');
  }

  hear(message) {
    if (message.id !== undefined && message.id !== this.id) return; // of a run that was given up
    const history = this.coming || this.history;
    switch (message.is) {
      case 'lines':
        history.read(message.text);
        if (this.run.mode === 'sim') this.stream(history);
        else history.generated = message.generated * ms;
        if (message.over) this.finish();
        this.tell('lines', history);
        break;
      case 'stands': this.stand(history); break;
      case 'acted': {
        const word = message.words;
        if (message.isDone) {
          this.run.actions = this.run.actions.filter((action) => action.ms <= message.at);
          for (const one of word.split(',')) this.run.actions.push({ ms: message.at, word: one });
          this.tell('acted', { word, at: message.at });
        } else this.tell('error', history.errors[history.errors.length - 1]);
        this.acts.shift()?.(message.isDone ? message.at : null);
        break;
      }
      case 'failed':
        console.error(message.text);
        this.tell('error', message.text);
        break;
      case 'differs':
        console.error(`A replay differs from the history before it at ${message.ms} ms.`);
        break;
      default: this.tell(message.is, message.text);
    }
  }

  // stream shows a sim run while it is made. It has no ticks: its last event says how far it is.
  stream(history) {
    const last = history.events[history.events.length - 1];
    history.generated = Math.max(last ? last.at : 0, history.over ? history.over.at : 0);
    if (this.coming && history.begin) this.swap(history);
  }

  // finish notes that no more lines come.
  finish() {
    if (!this.coming) this.isOver = true;
  }

  swap(history) {
    this.history = history;
    this.coming = null;
    this.tell('swapped', history);
  }

  stand(history) {
    if (this.coming) this.swap(history);
    if (history.errors.length > 0) this.tell('error', history.errors[history.errors.length - 1]);
    if (history.over || this.run.mode === 'sim') this.isOver = true;
    this.waiting.get(this.id)?.(history);
    this.waiting.delete(this.id);
  }

  // begin starts a run and resolves once it stands at its "until". With "check" it replays the run before.
  begin(run, until, check) {
    this.id++;
    this.run = run;
    this.isOver = false;
    this.asked = until;
    this.coming = new History();
    this.acts = [];
    const ready = new Promise((resolve) => this.waiting.set(this.id, resolve));
    this.worker.postMessage({ do: 'start', id: this.id, fragment: format({ ...run, actions: [] }), actions: run.actions, until, check });
    this.tell('begin', run);
    return ready;
  }

  open(fragment) {
    const run = parse(fragment);
    return this.begin(run, Math.max(0, run.until || 0));
  }

  // need has the worker advance as far as the playhead shows soon.
  need(at, speed) {
    if (this.coming || this.isOver || this.run === null) return;
    const until = Math.max(at / ms + lead * speed, at / ms + tick);
    const saved = this.asked - at / ms > lead * speed * 0.6; // a message for each frame would be too many
    if (until <= this.asked || (saved && speed * lead > 2 * tick)) return;
    this.asked = until;
    this.worker.postMessage({ do: 'need', id: this.id, until });
  }

  // isBehind is true if what the reader sees is older than what the worker has just made.
  isBehind(at, speed) {
    const ahead = this.history.generated - at;
    return ahead > (lead * Math.max(speed, 1) * 1.5 + 10 * tick) * ms;
  }

  // act performs an action: at the next tick that has not been made, or, if the playhead is behind,
  // there, in a new run that has the same past. It resolves with the action's time in milliseconds.
  async act(word, at, speed) {
    if (this.coming || this.run === null || this.run.mode === 'sim') return null;
    if (!this.isOver && !this.isBehind(at, speed)) {
      const acted = new Promise((resolve) => this.acts.push(resolve));
      this.worker.postMessage({ do: 'act', id: this.id, words: word });
      return acted;
    }
    const ticks = Math.ceil(at / ms / tick);
    const then = ticks * tick;
    // What happens at the very time of the playhead has been seen, and comes before the action.
    const actions = this.run.actions.filter((action) => action.ms < then || (action.ms === then && then * ms <= at));
    for (const one of word.split(',')) actions.push({ ms: then, word: one });
    await this.begin({ ...this.run, actions }, then + tick, ticks);
    this.tell('acted', { word, at: then });
    return then;
  }

  // fragment is the address of the run, standing at a time.
  fragment(at = null) {
    return this.run === null ? '' : format(this.run, at === null ? null : Math.round(at / ms));
  }
}
