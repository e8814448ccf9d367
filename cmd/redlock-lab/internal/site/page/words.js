// What the page says in words.

const numbers = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];

export const count = (n) => numbers[n] || String(n);

// plural returns "1 vote", "2 votes".
export const plural = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

// list returns "1", "1 and 2", "1, 2 and 3".
export function list(items) {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items[items.length - 1]}`;
}

// named returns "master 2", "masters 2 and 3".
const named = (word, items) => `${word}${items.length === 1 ? '' : 's'} ${list(items)}`;

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// seconds shows nanoseconds with as many digits as are of use.
export function seconds(ns) {
  const s = ns / 1e9;
  if (Math.abs(s) >= 100) return `${s.toFixed(0)} s`;
  if (Math.abs(s) >= 0.1 || s === 0) return `${s.toFixed(1)} s`;
  return `${(ns / 1e6).toFixed(1)} ms`;
}

// moment shows a time of the run to the microsecond where that matters.
export function moment(ns, span = 1e10) {
  const s = ns / 1e9;
  if (span < 1e7) return `${(ns / 1e6).toFixed(3)} ms`;
  if (span < 2e9) return `${s.toFixed(3)} s`;
  return `${s.toFixed(span < 2e10 ? 2 : 1)} s`;
}

// token shows the end of a long token: all of a run begin alike. The whole one is in the title.
export function token(n) {
  if (!n) return '';
  const digits = String(n);
  if (digits.length <= 6) return digits;
  return `…${digits.slice(-9).replace(/(\d{3})(?=\d)/g, '$1 ')}`;
}

export const speed = (x) => (x >= 1 ? `${x}×` : `1/${Math.round(1 / x).toLocaleString('en')}×`);

// rounded shortens the durations in a text, such as 8.205397349s.
export const rounded = (text) => text.replace(/(\d+\.\d{2})\d+(m?s)\b/g, '$1 $2');

// realSpeed shows a measured speed with two digits.
export const realSpeed = (x) => (x >= 1 ? `${x.toPrecision(2)}×` : x >= 0.67 ? `${x.toFixed(1)}×` : `1/${Math.round(1 / Math.max(x, 1e-5))}×`);

export const voteMarks = { granted: '✓', refused: '✕', failed: '?', '': '·' };

// clientState says what a client does.
export function clientState(s) {
  if (!s) return 'idle';
  if (s.state === 'dead') return 'dead';
  if (s.suspended) return `its machine sleeps (${s.state})`;
  if (s.paused) return `stands still (${s.state})`;
  switch (s.state) {
    case 'asking': return 'asks for the lock';
    case 'waiting': return 'waits for the lock';
    case 'holding': return s.writing ? 'holds the lock and works' : 'holds the lock';
    case 'releasing': return 'releases the lock';
    case 'extending': return 'extends the lock';
    default: return s.writing ? 'works without the lock' : 'idle';
  }
}

export function masterState(s) {
  if (!s || (s.up && !s.hung)) return 'up';
  return s.up ? 'hangs' : 'down';
}

// holding returns the locks that a client believes in at a time.
export const holding = (s, at) => (s && s.locks ? s.locks.filter((lock) => lock.until > at && lock.context === 'alive') : []);

// now says in a sentence or two what happens at a time.
export function now(history, at) {
  if (!history.begin) return '';
  const { clients, nodes, quorum, slots } = history.begin;
  const says = [];
  const holders = [];
  const byKey = new Map(); // key → clients that hold it
  const waiting = [];
  const asking = [];
  const still = [];
  for (let c = 1; c <= clients; c++) {
    const s = history.client(c, at);
    if (!s) continue;
    const locks = holding(s, at);
    if (locks.length > 0) holders.push(c);
    for (const { key } of locks) byKey.set(key, [...(byKey.get(key) || []), c]);
    if (s.state === 'waiting') waiting.push(c);
    if (s.asking && s.state !== 'waiting' && !s.paused && !s.suspended) asking.push([c, s.asking]);
    if (s.paused || s.suspended) still.push(c);
  }
  if (slots > 0 && holders.length > 0) {
    says.push(`${capital(named('client', holders))} ${holders.length === 1 ? 'has' : 'have'} one of ${slots} slots${holders.length > 1 ? ' each' : ''}.`);
  } else if (holders.length > 1) {
    const both = [...byKey.values()].find((clients) => clients.length > 1);
    says.push(both
      ? `${capital(named('client', both))} believe that they hold the lock.`
      : `${capital(named('client', holders))} hold locks on different keys.`);
  } else if (holders.length === 1) {
    const [c] = holders;
    says.push(still.includes(c)
      ? `Client ${c} holds the lock but stands still.`
      : `Client ${c} holds the lock${waiting.length > 0 ? ` and ${named('client', waiting)} ${waiting.length === 1 ? 'waits' : 'wait'}` : ''}.`);
  }
  const other = asking.filter(([c]) => !holders.includes(c));
  if (other.length > 0) {
    const [c, ask] = other.sort((a, b) => b[1].granted - a[1].granted)[0];
    const aim = { extend: ' to extend its lock', release: ' to release its lock' }[ask.verb] || '';
    const votes = `lient ${c} has ${ask.granted} of ${nodes} votes${aim} and needs ${ask.need}.`;
    says.push(other.length > 1 ? `${capital(named('client', other.map(([d]) => d).sort()))} ask: c${votes}` : `C${votes}`);
  } else if (holders.length === 0 && waiting.length > 0) {
    says.push(`${capital(named('client', waiting))} ${waiting.length === 1 ? 'waits' : 'wait'}.`);
  }
  if (says.length === 0) says.push(slots > 0 ? 'Nobody has a slot.' : 'Nobody holds the lock.');
  const others = still.filter((c) => !holders.includes(c));
  if (others.length > 0) says.push(`${capital(named('client', others))} ${others.length === 1 ? 'stands' : 'stand'} still.`);
  const away = [];
  for (let n = 1; n <= nodes; n++) {
    const s = history.master(n, at);
    if (s && (!s.up || s.hung)) away.push(n);
  }
  if (away.length > 0) {
    const left = nodes - away.length;
    says.push(left >= quorum
      ? `${capital(named('master', away))} ${away.length === 1 ? 'does' : 'do'} not answer, and ${count(left)} of ${count(nodes)} are enough.`
      : `Only ${left} of ${nodes} masters answer, and a lock needs ${quorum}.`);
  }
  return says.join(' ');
}

const said = {
  started: (e) => `Client ${e.client} starts${e.text ? `: ${e.text}` : ''}.`,
  wrote: (e) => `Client ${e.client} ${e.text || 'writes'}${e.err ? `: ${e.err}` : ''}.`,
  asked: (e) => `Client ${e.client} asks for the lock.`,
  granted: (e) => `Client ${e.client} has the lock until ${moment(e.until)}${e.token ? `, token ${token(e.token)}` : ''}.`,
  denied: (e) => `Client ${e.client} does not get the lock: ${e.err}`,
  extending: (e) => `Client ${e.client} extends its lock.`,
  extended: (e) => `Client ${e.client} has extended its lock until ${moment(e.until)}.`,
  'not extended': (e) => `Client ${e.client} could not extend its lock: ${e.err}`,
  renewed: (e) => `Client ${e.client} has renewed its lock until ${moment(e.until)}.`,
  releasing: (e) => `Client ${e.client} releases its lock.`,
  released: (e) => `Client ${e.client} has released its lock${e.err ? `: ${e.err}` : ''}.`,
  ended: (e) => `The lock of client ${e.client} has ended${e.err ? `: ${e.err}` : ''}.`,
  paused: (e) => `Client ${e.client} stands still.`,
  resumed: (e) => `Client ${e.client} goes on.`,
  died: (e) => `Client ${e.client} died.`,
  closed: (e) => `Client ${e.client} closes.`,
  voted: (e) => `Master ${e.node} answers client ${e.client}: ${e.text}`,
  stored: (e) => `Master ${e.node} stores the key for client ${e.client} until ${moment(e.until)}.`,
  removed: (e) => `Master ${e.node} removes the key.`,
};

// event says what an event was.
export function event(e) {
  const say = said[e.kind];
  if (say) return say(e);
  const who = [e.client ? `client ${e.client}` : '', e.node ? `master ${e.node}` : ''].filter(Boolean).join(', ');
  const what = [e.text || e.kind, e.err].filter(Boolean).join(': ');
  return capital(who && !what.includes(who) ? `${who}: ${what}` : what);
}

// minor events are shown only on demand.
export const isMinor = (e) => e.kind === 'voted' || e.kind === 'stored' || e.kind === 'removed';

const verbs = {
  kill: 'kill', restart: 'restart with its memory', forget: 'restart without memory', hang: 'hang', resume: 'resume',
  ahead: 'clock ahead', back: 'clock back', cut: 'cut', cutask: 'requests cut', cutanswer: 'replies cut', lose: 'lose replies',
  slow: 'slow', heal: 'heal', pause: 'pause', suspend: 'suspend the machine', continue: 'continue', die: 'kill', start: 'start',
  acquire: 'acquire', try: 'try once', release: 'release', extend: 'extend', keep: 'keep alive', giveup: 'give up waiting',
  write: 'work, then write', work: 'work by itself', rest: 'stop working by itself',
};

// action says what the reader did: "Master 2: kill", "Link of client 1 to master 2: cut".
export function action(word) {
  const [verb, ...rest] = word.split('-');
  const long = (target) => target?.replace(/^c(\d)$/, 'client $1').replace(/^m(\d)$/, 'master $1');
  const targets = rest.filter((part) => /^[cm]\d$/.test(part));
  const amount = rest.find((part) => /^\d+$/.test(part));
  const isLink = ['cut', 'cutask', 'cutanswer', 'lose', 'slow', 'heal'].includes(verb);
  const what = isLink
    ? (targets.length === 2 ? `link of ${long(targets[0])} to ${long(targets[1])}` : `all links of ${long(targets[0])}`)
    : long(targets[0]) || '';
  const by = amount === undefined ? '' : ` by ${seconds(Number(amount) * 1e6)}`;
  return `${capital(what)}: ${verbs[verb] || verb}${by}`;
}
