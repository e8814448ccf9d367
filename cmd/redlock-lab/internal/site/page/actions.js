// What the reader can do, and the buttons for it.

import { html } from './vendor/htm-preact.js';

// perform is set by main: it does an action, "kill-m1".
export const hand = { perform: () => {}, isDisabled: false };

// Act is a button for an action. Its name says what it acts on; what one sees is shorter.
export function Act({ word, label, name, main, disabled }) {
  return html`<button type="button" class=${main ? 'act main' : 'act'} data-act=${word} disabled=${disabled || hand.isDisabled}
    aria-label=${name} title=${name} onClick=${() => hand.perform(word)}>${label}</button>`;
}

// masterActs returns a master's actions: two or three at hand, the rest in a menu.
export function masterActs(n, s) {
  const up = !s || s.up;
  const hung = s && s.hung;
  const m = `m${n}`;
  const main = [
    up ? [`kill-${m}`, 'Kill', `Kill master ${n}`] : [`restart-${m}`, 'Restart', `Restart master ${n} with its memory`],
    [`forget-${m}`, 'Forget', `Forget: restart master ${n} without memory`],
  ];
  if (hung) main.push([`resume-${m}`, 'Resume', `Resume master ${n}`]);
  else if (up) main.push([`hang-${m}`, 'Hang', `Hang master ${n}`]);
  const more = [
    ['Clock', [
      [`ahead-${m}-3000`, '3 s ahead', `Clock of master ${n} 3 s ahead`],
      [`ahead-${m}-10000`, '10 s ahead', `Clock of master ${n} 10 s ahead`],
      [`back-${m}-3000`, '3 s back', `Clock of master ${n} 3 s back`],
    ]],
    ['All links to this master', linkActs(m, `all links to master ${n}`)],
  ];
  return { main, more };
}

// linkActs are what one can do to a link, or to all links of one end.
export function linkActs(link, name) {
  return [
    [`cut-${link}`, 'Cut', `Cut ${name}`],
    [`cutask-${link}`, 'Cut requests', `Cut requests on ${name}`],
    [`cutanswer-${link}`, 'Cut replies', `Cut replies on ${name}`],
    [`lose-${link}`, 'Lose replies', `Lose replies on ${name}`],
    [`slow-${link}-300`, 'Slow', `Slow ${name} by 300 ms`],
    [`heal-${link}`, 'Heal', `Heal ${name}`],
  ];
}

export function clientActs(n, s, nodes) {
  const c = `c${n}`;
  const state = s ? s.state : 'idle';
  const still = s && (s.paused || s.suspended);
  const dead = state === 'dead';
  const holds = s && (s.locks || []).some((lock) => lock.context === 'alive');
  const waits = state === 'waiting' || state === 'asking';
  let lock = [`acquire-${c}`, 'Acquire', `Acquire the lock for client ${n}`, dead];
  if (holds) lock = [`release-${c}`, 'Release', `Release the lock of client ${n}`, dead];
  else if (waits) lock = [`giveup-${c}`, 'Give up', `Give up: client ${n} stops waiting`];
  const main = [
    still ? [`continue-${c}`, 'Continue', `Continue client ${n}`] : [`pause-${c}`, 'Pause', `Pause client ${n}`, dead],
    dead ? [`start-${c}`, 'Start', `Start client ${n}`] : [`die-${c}`, 'Kill', `Kill client ${n}`],
    lock,
  ];
  const more = [
    ['Lock', [
      [`acquire-${c}`, 'Acquire', `Acquire the lock for client ${n}, waiting for it`],
      [`try-${c}`, 'Try once', `Try once to acquire the lock for client ${n}`],
      [`extend-${c}`, 'Extend', `Extend the lock of client ${n}`],
      [`keep-${c}`, 'Keep alive', `Keep alive the lock of client ${n}`],
      [`release-${c}`, 'Release', `Release the lock that client ${n} holds`],
      [`giveup-${c}`, 'Give up', `Give up waiting as client ${n}`],
      [`write-${c}`, 'Work, write', `Work, write: client ${n} works for a second, then writes`],
    ]],
    ['By itself', [
      [`work-${c}`, 'Work', `Work: client ${n} acquires, writes and releases by itself`],
      [`rest-${c}`, 'Rest', `Rest: client ${n} no longer acquires by itself`],
    ]],
    ['Its machine', [
      [`suspend-${c}`, 'Suspend', `Suspend the machine of client ${n}`],
      [`continue-${c}`, 'Continue', `Continue client ${n} now`],
    ]],
    ['All its links', linkActs(c, `all links of client ${n}`)],
  ];
  const links = [];
  for (let m = 1; m <= nodes; m++) links.push([`Link to master ${m}`, linkActs(`${c}-m${m}`, `the link of client ${n} to master ${m}`)]);
  return { main, more, links };
}

// Group is a row of actions under a heading.
export function Group({ title, acts }) {
  return html`<div class="group"><p class="group-title">${title}</p><div class="row">
    ${acts.map(([word, label, name, disabled]) => html`<${Act} key=${word} word=${word} label=${label} name=${name} disabled=${disabled} />`)}
  </div></div>`;
}

// More is a menu that closes on Escape and when the focus leaves it.
export function More({ name, children }) {
  const close = (event) => {
    const details = event.currentTarget;
    if (event.type === 'keydown' && event.key === 'Escape' && details.open) {
      details.open = false;
      details.querySelector('summary').focus();
      event.stopPropagation();
    }
    if (event.type === 'focusout' && event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false;
  };
  return html`<details class="more" onKeyDown=${close} onFocusOut=${close} onToggle=${place}>
    <summary aria-label=${name} title=${name}><span aria-hidden="true">⋯</span></summary>
    <div class="menu">${children}</div>
  </details>`;
}

// place opens a menu to the side where there is room.
function place(event) {
  const details = event.currentTarget;
  if (!details.open) return;
  const menu = details.querySelector('.menu');
  menu.style.translate = '0 0';
  const box = menu.getBoundingClientRect();
  const right = document.documentElement.clientWidth - 8;
  if (box.right > right) menu.style.translate = `${Math.max(right - box.right, 8 - box.left)}px 0`;
  else if (box.left < 8) menu.style.translate = `${8 - box.left}px 0`;
}

document.addEventListener('pointerdown', (event) => {
  for (const open of document.querySelectorAll('details.more[open]')) {
    if (!open.contains(event.target)) open.open = false;
  }
});
