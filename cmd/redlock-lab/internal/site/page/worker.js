// The worker runs the module. It advances a run as far as the page asks for, performs actions, and
// replays a run from its start when the page goes back to change something.

import { load } from './wasi.js';

const tick = 2; // milliseconds
const slice = 12; // milliseconds of real time after which messages are looked at
const chunk = 1 << 16; // characters after which lines are posted
const longest = 600_000; // milliseconds of virtual time in a run

let make = null; // makes an instance
let spare = null; // an instance that has not begun
let run = null; // the run under way

const post = (message) => postMessage(message);
const next = new MessageChannel();
next.port1.onmessage = () => work();

// Recorder keeps a running hash of the lines after each tick, so that a replay can be checked.
class Recorder {
  constructor() {
    this.hash = 0x811c9dc5;
    this.hashes = [];
  }

  add(text) {
    let hash = this.hash;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.hash = hash;
  }

  tick() {
    this.hashes.push(this.hash);
  }
}

function refill() {
  if (spare === null && make !== null && run?.failed !== true) spare = make();
}

// start begins a run. Its actions have the times at which they are performed. With "check" it is a
// replay of the run before it up to that tick.
function start({ id, fragment, actions, until, check }) {
  const before = run;
  run = { id, actions, ticks: 0, until: 0, text: '', begun: false, over: false, failed: false, stood: false, recorder: new Recorder() };
  if (check !== undefined && before) run.check = { ticks: check, hashes: before.recorder.hashes };
  const guest = spare || make();
  spare = null;
  run.guest = guest;
  let complaint = '';
  guest.complaint = (text) => { complaint = (complaint + text).slice(-4000); };
  guest.text = (text) => {
    // begin gets the settings alone, so that nothing depends on the actions before their time.
    if (run.begun) run.recorder.add(text);
    run.text += text;
    if (run.text.length >= chunk) flush();
  };
  run.complaint = () => complaint;
  const sim = new URLSearchParams(fragment).has('sim');
  attempt(() => {
    const refused = guest.begin(fragment);
    run.begun = true;
    if (refused) run.failed = true;
    if (sim || refused) run.over = true;
  });
  flush();
  run.until = until;
  next.port2.postMessage(0);
}

// attempt runs the module. A crash ends the run.
function attempt(f) {
  try {
    f();
  } catch (error) {
    run.failed = run.over = true;
    post({ is: 'failed', id: run.id, text: `${error.message}\n${run.complaint()}`.trim() });
  }
}

// due takes the actions of the next tick.
function due() {
  const words = [];
  while (run.actions.length > 0 && run.actions[0].ms <= run.ticks * tick) words.push(run.actions.shift().word);
  return words.join(',');
}

// advance lets a tick pass. It returns false if an action is none: then no time has passed.
function advance(words) {
  let state = 0;
  attempt(() => { state = run.guest.advance(words); });
  if (state === 2) return false;
  run.ticks++;
  if (state === 0 || run.ticks * tick >= longest) run.over = true;
  run.recorder.tick();
  if (run.check && run.ticks === run.check.ticks) {
    if (run.check.hashes[run.ticks - 1] !== run.recorder.hash) {
      post({ is: 'differs', id: run.id, ms: run.ticks * tick });
    }
    run.check = null;
  }
  return true;
}

// flush posts the whole lines that were written. Generated is the time up to which they are complete.
function flush() {
  const end = run.text.lastIndexOf('\n') + 1;
  const text = run.text.slice(0, end);
  run.text = run.text.slice(end);
  post({ is: 'lines', id: run.id, text, generated: run.ticks * tick, over: run.over });
}

function work() {
  if (run === null || run.over) return settle();
  const begin = performance.now();
  while (run.ticks * tick < run.until && !run.over) {
    advance(due());
    if (performance.now() - begin > slice) break;
  }
  flush();
  if (run.ticks * tick < run.until && !run.over) next.port2.postMessage(0);
  else settle();
}

// settle reports that the run stands where the page wants it, and makes a spare instance while it is idle.
function settle() {
  if (run && !run.stood) {
    run.stood = true;
    post({ is: 'stands', id: run.id, generated: run.ticks * tick, over: run.over });
    setTimeout(refill, 50);
  }
}

const tasks = {
  start,
  need({ id, until }) {
    if (run?.id !== id || until <= run.until) return;
    const idle = run.ticks * tick >= run.until;
    run.until = until;
    if (idle) work();
  },
  act({ id, words }) {
    if (run?.id !== id || run.over) return;
    const at = run.ticks * tick;
    const planned = due();
    run.actions = []; // a new action puts another future in the place of the planned one
    const isDone = advance(planned ? `${planned},${words}` : words);
    flush();
    post({ is: 'acted', id, at, words, isDone });
  },
};

onmessage = ({ data }) => tasks[data.do](data);

try {
  make = await load(new URL('lab.wasm.gz', import.meta.url), (text) => post({ is: 'progress', text }));
  spare = make();
  post({ is: 'ready' });
} catch (error) {
  post({ is: 'broken', text: error.message });
}
