// The page: it connects the lab, the playhead and what one sees.

import { html, render } from './vendor/htm-preact.js';
import { hand } from './actions.js';
import { ms, newcomer, parse } from './address.js';
import { Resource } from './cards.js';
import { copy } from './clipboard.js';
import { Tools, Transport } from './controls.js';
import { install } from './hooks.js';
import { Lab } from './lab.js';
import { LinkMenu } from './linkmenu.js';
import { follow } from './live.js';
import { Log } from './log.js';
import { Checked, Violation } from './oracle.js';
import { Ideas, Nudge } from './nudge.js';
import { Panel } from './panel.js';
import { Player, speeds } from './player.js';
import { Scene } from './scene.js';
import { Signs } from './signs.js';
import * as theme from './theme.js';
import { Timeline } from './timeline.js';
import { Guide, Tours } from './tours.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);
const { body } = document;
const often = 250; // milliseconds between two looks at what changes slowly
const speakEvery = 4000; // milliseconds between two sentences for a screen reader

let isReady;
const ready = new Promise((resolve) => { isReady = resolve; });
let isBroken = false;

const view = { violation: null, isLogOpen: false, isMinor: false, copied: '', notice: '', retry: null, playsAtOnce: false };

const page = {
  // open starts a run: a fragment or what parse makes of it. "play" is whether the playhead moves then.
  async open(fragment, play = false) {
    const run = typeof fragment === 'string' ? parse(fragment) : fragment;
    const until = Math.max(0, run.until || 0);
    const fallback = lab.history.begin ? lab.run : parse(newcomer);
    player.reset();
    view.violation = null;
    view.retry = null;
    view.notice = '';
    view.playsAtOnce = play && run.mode === 'sim'; // while it is made
    await lab.begin({ mode: run.mode, sim: run.sim, settings: run.settings, actions: run.actions }, until + (until > 0 ? 2 : 0));
    if (!lab.history.begin && run !== fallback) {
      const why = lab.history.errors.join('\n');
      await page.open({ ...fallback, until: null }, true);
      view.notice = `That cannot be run: ${why}.`;
      page.changed();
      return;
    }
    if (!player.isPlaying) player.seek(until * ms);
    if (play && !view.violation) player.play();
    page.changed();
  },

  async perform(word) {
    if (isBroken) return;
    const paused = !player.isPlaying;
    const at = await lab.act(word, player.at, player.speed);
    if (at === null) return;
    if (view.violation && view.violation.at > at * ms) view.violation = null;
    view.retry = null;
    // A reader who acts while the run stands still sees what came of it.
    if (paused && !player.isPlaying) player.seek((at + 2) * ms);
    for (const one of word.split(',')) guide.acted(one);
    page.changed();
  },

  change(name, value) {
    const { run } = lab;
    const settings = { ...run.settings, [name]: value };
    page.open({ ...run, settings, until: null }, true);
  },

  // again replays the same actions with other settings, from the start to where the playhead was and on.
  async again({ name, settings }, { at }) {
    const { run } = lab;
    await page.open({ ...run, settings: { ...run.settings, ...settings }, until: null }, true);
    view.retry = { name, at };
  },

  goOn() {
    view.violation = null;
    player.play();
    page.changed();
  },

  toggle() {
    if (player.isPlaying) player.pause();
    else player.play();
  },

  setSpeed(speed) {
    player.speed = speeds.reduce((best, one) => (Math.abs(Math.log(one / speed)) < Math.abs(Math.log(best / speed)) ? one : best));
    player.realSpeed = player.speed;
    page.changed();
  },

  isStopped: () => view.violation !== null,
  isBusy: () => lab.run === null || guide.tour !== null || view.violation !== null || lab.coming !== null || lab.run.mode === 'sim',
  command() {
    if (lab.run.mode === 'sim') return lab.history.begin?.command || '';
    return `redlock-lab sim --exact --scenario '${lab.fragment(player.at)}'`;
  },

  async copy(what, text) {
    await copy(text);
    view.copied = what;
    page.changed();
    setTimeout(() => { view.copied = ''; page.changed(); }, 1600);
  },

  theme() {
    theme.toggle();
    restyle();
  },

  changed() { dirty = true; },
};

let dirty = true;

const lab = new Lab((name, value) => {
  if (name === 'progress') progress(value);
  else if (name === 'broken') {
    isBroken = true;
    body.dataset.state = 'over';
    progress(`The simulation did not start: ${value}`);
  } else if (name === 'ready') begin();
  else if (name === 'begin') progress(lab.run.mode === 'sim' ? 'Running the seed' : '');
  else if (name === 'swapped') show();
  else if (name === 'error') {
    view.notice = value;
    page.changed();
  } else if (name === 'lines' && lab.isOver) {
    progress('');
    page.changed();
  } else if (name === 'acted') saveAddress(true);
});

const player = new Player(lab, (what) => {
  if (what === 'violation') noticeViolation();
  if (what === 'playing' && view.violation) view.violation = null;
  if (what === 'sought' && view.violation && view.violation.at > player.at + 1) view.violation = null;
  saveAddress();
  page.changed();
});

const timeline = new Timeline($('timeline'), player);
page.lab = lab;
page.player = player;
page.timeline = timeline;
const guide = new Guide(page);
const nudge = new Nudge(page);
const menu = new LinkMenu($('linkmenu'));
const scene = new Scene($('scene'), (link, event) => { if (lab.run?.mode !== 'sim') menu.open(link, event); });
hand.perform = (word) => page.perform(word);

function progress(text) {
  const line = $('progress');
  line.textContent = text;
  line.hidden = text === '';
}

function begin() {
  const fragment = location.hash.slice(1);
  progress('');
  page.open(fragment || newcomer, !parse(fragment).until).then(isReady);
}

// show renders a history that has come in place of another.
function show() {
  if (!lab.history.begin) return;
  hand.isDisabled = lab.run.mode === 'sim';
  scene.show(lab.history.begin, framed());
  timeline.show(lab.history.begin, () => lab.run.actions);
  if (view.playsAtOnce) player.play();
  page.changed();
}

function framed() {
  const v = view.violation;
  return v ? v.clients || (v.locks || []).map((lock) => lock.client) : [];
}

function noticeViolation() {
  const first = lab.history.violationsUpTo(player.at)[0];
  if (!first) return;
  player.shownViolation = true;
  view.violation = first;
  page.changed();
  draw();
  const banner = document.querySelector('.violation');
  banner?.focus({ preventScroll: true });
  banner?.scrollIntoView({ block: 'nearest' });
}

// draw renders what is not part of the moving picture.
function draw() {
  dirty = false;
  const { history, run } = lab;
  render(html`<${Tools} page=${page} copied=${view.copied} />`, $('tools'));
  render(html`<${Transport} page=${page} />`, $('transport'));
  if (!run || !history.begin) {
    render(html`${notice()}`, $('oracle'));
    return;
  }
  const isSim = run.mode === 'sim';
  const { begin: settings } = history;
  render(html`${notice()}
    ${isSim && html`<p class="notice quiet-notice">A seed of the fault lab: it has drawn all actions, so the buttons are off. You can play, step and scrub.</p>`}
    ${view.retry && player.at > view.retry.at + 5e8 && history.violations.length === 0
      && html`<p class="notice quiet-notice">The same actions again, now with ${view.retry.name}: no rule was broken.</p>`}
    ${view.violation && html`<${Violation} violation=${view.violation} settings=${run.settings} forgot=${forgot()} isSim=${isSim} again=${page.again} goOn=${page.goOn} />`}`, $('oracle'));
  render(html`<${Tours} guide=${guide} />`, $('guide'));
  render(html`
    ${(!isSim || history.all('resource').length > 0) && html`<${Resource} entity="resource" />`}
    <${Checked} history=${history} at=${player.at} fencing=${settings.fencing} slots=${settings.slots} />
    <${Signs} />
    <${Panel} run=${run} change=${page.change} openSim=${(f) => page.open(f, true)} openScenario=${() => page.open(newcomer, true)} />
    <${Log} history=${history} at=${player.at} open=${view.isLogOpen} minor=${view.isMinor}
      toggle=${(open) => { if (open !== view.isLogOpen) { view.isLogOpen = open; page.changed(); } }}
      toggleMinor=${(minor) => { view.isMinor = minor; page.changed(); }} seek=${(at) => { player.pause(); player.seek(at); }} />`, $('side'));
  const isFree = !isSim && !guide.tour && !view.violation;
  render(isFree && html`<${Ideas} nudge=${nudge} history=${history} at=${player.at} />`, $('ideas'));
  scene.show(settings, framed());
  mark();
}

const notice = () => view.notice && html`<p class="notice" role="alert">${view.notice}
  <button type="button" class="quiet" onClick=${() => { view.notice = ''; page.changed(); }}>Close</button></p>`;

function forgot() {
  const { history } = lab;
  for (let n = 1; n <= history.nodes; n++) if (history.master(n, player.at)?.forgot) return true;
  return false;
}

// mark tells style sheets and tests where the page is.
function mark() {
  const set = (name, value) => {
    if (value === null) delete body.dataset[name];
    else if (body.dataset[name] !== value) body.dataset[name] = value;
  };
  const isOver = lab.isOver && player.at >= lab.history.generated;
  set('state', player.isPlaying ? 'playing' : isOver ? 'over' : 'paused');
  set('violation', view.violation ? view.violation.rule : null);
  set('tour', guide.tour ? guide.tour.name : null);
  set('step', guide.tour ? String(guide.at + 1) : null);
}

let lastLook = 0;
let lastSpoken = 0;
let spokenText = '';
let savedAt = 0;

// look does a few times a second what need not be done in each frame.
function look(real) {
  lastLook = real;
  guide.look();
  nudge.look();
  const text = words.now(lab.history, player.at);
  if ($('now').textContent !== text) $('now').textContent = text;
  if (text !== spokenText && real - lastSpoken > speakEvery) {
    lastSpoken = real;
    spokenText = text;
    $('spoken').textContent = text;
  }
  if (player.isPlaying) dirty = true;
}

function saveAddress(now = false) {
  if (!lab.run || lab.coming) return;
  if (!now && performance.now() - savedAt < 300) {
    clearTimeout(saveAddress.later);
    saveAddress.later = setTimeout(() => saveAddress(true), 320);
    return;
  }
  savedAt = performance.now();
  history.replaceState(null, '', `#${lab.fragment(player.isPlaying ? null : player.at)}`);
}

function frame(real) {
  requestAnimationFrame(frame);
  const moved = player.at;
  player.frame(real);
  if (lab.history.begin) {
    const still = !player.isPlaying;
    follow(lab.history, player.at, real, still && moved !== player.at);
    scene.frame(lab.history, player.at, player.speed);
    timeline.frame(lab.history, player.at, real);
    const text = words.moment(player.at, player.isPlaying ? 1e9 * player.speed : 1e8);
    const clock = $('clock');
    if (clock && clock.textContent !== text) clock.textContent = text;
  }
  if (real - lastLook > often) look(real);
  if (dirty) draw();
}

function restyle() {
  scene.theme();
  timeline.theme();
  page.changed();
}

theme.start(restyle);

document.addEventListener('keydown', (event) => {
  if (event.key !== ' ' || event.target.closest('button, input, summary, textarea, select, a')) return;
  event.preventDefault();
  page.toggle();
});

// The fragment is the address of the run, so the link to the stage moves the focus by hand.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('stage').focus();
});

addEventListener('hashchange', () => {
  const fragment = location.hash.slice(1);
  if (fragment && fragment !== lab.fragment(player.isPlaying ? null : player.at)) page.open(fragment, !parse(fragment).until);
});

install(page, ready);
progress('Loading the simulation');
draw();
requestAnimationFrame(frame);
