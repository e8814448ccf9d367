// The messages of a run: which are under way at a time, and where they are.

const bucket = 250e6; // nanoseconds
const empty = [];

export class Messages {
  // stop returns what stops a message at a time: "cut", "deaf" if the receiver stands still, or "".
  constructor(stop) {
    this.stop = stop;
    this.byID = new Map(); // those that may still end otherwise than planned
    this.buckets = []; // for each stretch of time the messages that are under way in it
    this.open = new Set(); // those whose end is not known
    this.reached = 0; // the last bucket that exists
  }

  sent(line) {
    this.reach(line.at);
    const message = {
      at: line.at, id: line.id, client: line.client, node: line.node, request: line.to === 'node',
      delay: line.delay, lost: line.lost === true, what: line.what, op: line.op, vote: line.vote || '',
      end: null, gone: false, first: this.reached,
    };
    this.byID.set(line.id, message);
    this.open.add(message);
    this.bucketAt(this.reached).push(message);
  }

  // ended notes when a message really arrived, or that it never will.
  ended(line, gone) {
    this.reach(line.at);
    const message = this.byID.get(line.id);
    if (message === undefined) return;
    message.end = line.at;
    message.gone = gone;
    this.byID.delete(line.id);
    this.open.delete(message);
  }

  bucketAt(i) {
    while (this.buckets.length <= i) this.buckets.push([]);
    return this.buckets[i];
  }

  // reach lets messages that are still under way go on in the next buckets.
  reach(at) {
    const last = Math.floor(at / bucket);
    while (this.reached < last) {
      this.reached++;
      const start = this.reached * bucket;
      const here = this.bucketAt(this.reached);
      for (const message of this.open) {
        if (message.at + message.delay >= start || this.heldBy(message, start) !== '') {
          here.push(message);
        } else {
          this.open.delete(message);
          this.byID.delete(message.id);
        }
      }
    }
  }

  // heldBy returns what keeps a message that should have arrived by now, or "".
  heldBy(message, at) {
    const due = message.at + message.delay;
    if (message.end !== null || message.lost || at < due) return '';
    return this.stop(message, due);
  }

  // each calls f with the messages under way at a time, and those that have ended less than
  // "after" before it: f(message, how far it is from 0 to 1, how long ago it ended or -1, what keeps it).
  each(at, after, f) {
    this.reach(at); // there may have been no line for a while
    const from = Math.max(0, Math.floor((at - after) / bucket));
    const to = Math.floor(at / bucket);
    for (let i = from; i <= to; i++) {
      for (const message of this.buckets[i] || empty) {
        if (message.first < i && i > from) continue; // seen in the bucket before
        this.one(message, at, after, f);
      }
    }
  }

  one(message, at, after, f) {
    if (message.at > at) return;
    const due = message.at + message.delay;
    const way = message.delay > 0 ? Math.min(1, (at - message.at) / message.delay) : 1;
    if (message.end === null) {
      const stop = this.heldBy(message, at);
      if (at < due || stop) f(message, way, -1, stop);
      else if (at - due < after) f(message, 1, at - due, '');
    } else if (at < message.end) {
      f(message, way, -1, at >= due ? this.stop(message, due) || 'deaf' : '');
    } else if (at - message.end < after) {
      f(message, message.gone ? way : 1, at - message.end, '');
    }
  }
}
