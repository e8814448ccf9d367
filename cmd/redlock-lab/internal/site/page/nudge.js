// What the page proposes to a reader who has no tour: things to break, and what to do when a majority
// has forgotten a lock that somebody relies on.

import { html } from './vendor/htm-preact.js';
import { holding } from './words.js';

const slow = 0.1; // the speed while a lock is forgotten but believed in

export class Nudge {
  constructor(page) {
    this.page = page;
    this.victim = 0; // the client whose lock a majority has forgotten
    this.speed = null; // what to go back to
    this.isForgetting = false; // masters are to forget as soon as somebody holds the lock
  }

  holder() {
    const { lab, player } = this.page;
    for (let c = 1; c <= lab.history.clients; c++) {
      const [lock] = holding(lab.history.client(c, player.at), player.at);
      if (lock) return { client: c, lock };
    }
    return null;
  }

  // keepers returns the masters that store a lock at the playhead.
  keepers({ client, lock }) {
    const { lab, player } = this.page;
    const keepers = [];
    for (let n = 1; n <= lab.history.nodes; n++) {
      const keys = lab.history.master(n, player.at)?.keys || [];
      if (keys.some((key) => key.client === client && key.op === lock.op)) keepers.push(n);
    }
    return keepers;
  }

  // look is called a few times a second.
  look() {
    const { page } = this;
    const { begin } = page.lab.history;
    if (!begin || page.isBusy()) return this.end();
    const holder = this.holder();
    if (this.isForgetting && holder && page.player.isPlaying) {
      const keepers = this.keepers(holder);
      if (keepers.length >= begin.quorum) {
        this.isForgetting = false;
        page.perform(keepers.slice(0, begin.quorum).map((n) => `forget-m${n}`).join(','));
        return undefined;
      }
    }
    const isForgotten = holder && !begin.guard && !begin.slots && this.forgetters() >= begin.quorum
      && this.keepers(holder).length < begin.quorum && page.player.at - holder.lock.since > 0;
    if (!isForgotten) return this.end();
    if (this.victim === 0) {
      this.victim = holder.client;
      if (page.player.speed > slow) {
        this.speed = page.player.speed;
        page.setSpeed(slow);
      }
    }
    return undefined;
  }

  forgetters() {
    const { lab, player } = this.page;
    let count = 0;
    for (let n = 1; n <= lab.history.nodes; n++) if (lab.history.master(n, player.at)?.forgot) count++;
    return count;
  }

  end() {
    if (this.victim === 0) return;
    this.victim = 0;
    if (this.speed !== null && this.page.player.speed === slow) this.page.setSpeed(this.speed);
    this.speed = null;
    this.page.changed();
  }

  // rival returns a client that may try to get the lock now.
  rival() {
    const { lab, player } = this.page;
    for (let c = 1; c <= lab.history.clients; c++) {
      const s = lab.history.client(c, player.at);
      if (c !== this.victim && s && s.state !== 'dead' && !s.paused && !s.suspended) return { client: c, s };
    }
    return null;
  }

  // tryNow has the rival ask at once. If it waits for the lock already, it gives that up.
  async tryNow() {
    const { client, s } = this.rival();
    if (s.working) await this.page.perform(`rest-c${client}`);
    else if (s.asking) await this.page.perform(`giveup-c${client}`);
    await this.page.perform(`try-c${client}`);
    this.page.player.play();
  }
}

export function Ideas({ nudge, history, at }) {
  const { page } = nudge;
  if (nudge.victim) {
    const rival = nudge.rival();
    return html`<p class="ideas"><span>A majority of masters has forgotten the lock of client ${nudge.victim}. Time runs slower now.</span>
      ${rival && html`<button type="button" class="primary" data-do="try" onClick=${() => nudge.tryNow()}>Let client ${rival.client} try</button>`}</p>`;
  }
  const up = Array.from({ length: history.nodes }, (_, i) => i + 1).find((n) => history.master(n, at)?.up);
  return html`<p class="ideas"><span>Try this:</span>
    ${up && html`<button type="button" data-do="kill-one" onClick=${() => page.perform(`kill-m${up}`)}>Kill a master</button>`}
    <button type="button" data-do="forget-majority" aria-pressed=${nudge.isForgetting} onClick=${() => { nudge.isForgetting = !nudge.isForgetting; page.player.play(); page.changed(); }}>
      ${nudge.isForgetting ? 'Waiting for a holder …' : `Make ${history.begin.quorum} of them forget`}</button>
    <button type="button" class="only-stacked" data-do="tours" onClick=${() => document.getElementById('guide').scrollIntoView()}>Take a tour</button></p>`;
}
