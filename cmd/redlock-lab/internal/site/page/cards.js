// The cards: what each master stores, what each client believes, and what the resource has seen.

import { html } from './vendor/htm-preact.js';
import { Act, clientActs, Group, masterActs, More } from './actions.js';
import { Bar, Countdown, Live } from './live.js';
import * as words from './words.js';

const left = (until) => (at) => (until > at ? `${words.seconds(until - at)} left` : 'over');

// Who is a client's sign: its number on its colour.
export function Who({ client }) {
  if (!client) return html`<span class="who nobody" title="an unknown client">?</span>`;
  return html`<span class="who" style=${`--paint:var(--c${client});--on-paint:var(--o${client})`} title=${`client ${client}`}>${client}</span>`;
}

function Acts({ main }) {
  return html`<div class="acts">
    ${main.map(([word, label, name, disabled], i) => html`<${Act} key=${i} word=${word} label=${label} name=${name} disabled=${disabled} main />`)}
  </div>`;
}

export class Master extends Live {
  show(s) {
    const { n, begin } = this.props;
    const state = words.masterState(s);
    const keys = s ? s.keys || [] : [];
    const { main, more } = masterActs(n, s);
    return html`<article class="card master ${state}" id=${`m${n}`} aria-label=${`Master ${n}`}>
      <header><h3>Master ${n}</h3><p class="state"><i class="lamp" aria-hidden="true"></i>${state}</p>
        <${More} name=${`More for master ${n}`}>${more.map(([title, acts]) => html`<${Group} title=${title} acts=${acts} />`)}<//></header>
      <div class="keys">
        ${keys.map((key) => html`<div class="key" key=${`${key.key} ${key.client} ${key.op}`} style=${`--paint:var(--c${key.client})`}>
          <p><${Who} client=${key.client} /> <span class="key-name">${begin.mode === 'sim' ? `${key.key}: ` : ''}${key.client ? `client ${key.client}` : 'unknown'}</span>
            <${Countdown} text=${(at) => (key.until > at ? words.seconds(key.until - at) : 'expired')} /></p>
          <${Bar} until=${key.until} whole=${begin.ttl} /></div>`)}
        ${keys.length === 0 && html`<p class="nothing">no key</p>`}
      </div>
      <ul class="facts">${this.facts(s)}</ul>
      <${Acts} main=${main} />
    </article>`;
  }

  facts(s) {
    if (!s) return null;
    const facts = [];
    for (const queue of s.queues || []) {
      if (queue.clients.length > 0) facts.push(html`<li>queue ${queue.clients.map((c) => html`<${Who} client=${c} />`)}</li>`);
    }
    for (const fence of s.fences || []) facts.push(html`<li title=${`fence ${fence.token}`}>fence <b>${words.token(fence.token)}</b></li>`);
    if (s.jumped) facts.push(html`<li class="odd">clock ${s.jumped > 0 ? '+' : '−'}${words.seconds(Math.abs(s.jumped))}</li>`);
    if (s.forgot) facts.push(html`<li class="odd">lost its memory ${s.forgot === 1 ? 'once' : `${s.forgot} times`}</li>`);
    if (s.guarded) {
      facts.push(html`<li class="odd guarded"><${Countdown} text=${(at) => (s.guarded > at
        ? `its votes do not count for ${words.seconds(s.guarded - at)}` : at - s.guarded < 3e9 ? 'its votes count again' : '')} /></li>`);
    }
    return facts;
  }
}

export class Client extends Live {
  show(s) {
    const { n, begin, framed } = this.props;
    const { main, more, links } = clientActs(n, s, begin.nodes);
    const dead = s && s.state === 'dead';
    const still = s && (s.paused || s.suspended);
    const locks = s ? s.locks || [] : [];
    return html`<article class="card client ${dead ? 'dead' : ''} ${still ? 'still' : ''} ${framed ? 'framed' : ''}" id=${`c${n}`}
        aria-label=${`Client ${n}`} style=${`--paint:var(--c${n})`}>
      <header><h3><${Who} client=${n} /> Client ${n}</h3><p class="state">${words.clientState(s)}</p>
        <${More} name=${`More for client ${n}`}>
          ${more.map(([title, acts]) => html`<${Group} title=${title} acts=${acts} />`)}
          <details class="links"><summary>Links one by one</summary>
            ${links.map(([title, acts]) => html`<${Group} title=${title} acts=${acts} />`)}</details>
        <//></header>
      <div class="keys">
        ${locks.map((lock) => html`<div class="key" key=${lock.op}>
          <p title=${lock.token ? `token ${lock.token}` : ''}><span class="key-name">lock${begin.mode === 'sim' ? ` on ${lock.key}` : ''}${lock.kept ? ', kept alive' : ''}</span> <${Countdown} text=${left(lock.until)} /></p>
          <${Bar} until=${lock.until} whole=${begin.ttl} />
          <p class="lock-facts"><span class=${lock.context === 'alive' ? '' : 'odd'}>context ${lock.context}</span>
            ${lock.token ? html` <span>token <b>${words.token(lock.token)}</b></span>` : ''}</p></div>`)}
        ${locks.length === 0 && html`<p class="nothing">no lock</p>`}
      </div>
      ${this.votes(s, begin)}
      <${Acts} main=${main} />
    </article>`;
  }

  votes(s, begin) {
    const ask = s && s.asking;
    if (!ask) return html`<p class="votes last">${(s && s.last) || ' '}</p>`;
    const marks = Array.from({ length: begin.nodes }, (_, i) => ask.votes?.[i] || '');
    return html`<p class="votes"><span class="verb">${ask.verb}</span>
      <span class="marks" role="img" aria-label=${`${ask.granted} of ${begin.nodes} votes, needs ${ask.need}`}>
        ${marks.map((vote, i) => html`<i key=${i} class=${vote || 'open'} title=${`master ${i + 1}: ${vote || 'no answer yet'}`}>${words.voteMarks[vote]}</i>`)}
      </span>
      <span>${words.plural(ask.granted, 'vote')}, needs ${ask.need}</span></p>`;
  }
}

export class Resource extends Live {
  show(s) {
    const writes = (s && s.writes) || [];
    const verdict = (w) => (w.accepted ? (w.stale ? 'stale, but accepted' : 'accepted') : 'refused');
    return html`<section class="resource" aria-labelledby="resource-title">
      <h2 id="resource-title">Protected resource</h2>
      <p class="highest">${s && s.highest ? html`highest token <b title=${s.highest}>${words.token(s.highest)}</b>` : 'has seen no token'}</p>
      <ol class="writes" aria-label="Last writes">
        ${writes.slice(-5).reverse().map((w) => html`<li key=${`${w.at} ${w.client}`} class=${w.accepted ? (w.stale ? 'stale' : 'accepted') : 'refused'}>
          <${Who} client=${w.client} /><span class="write-token" title=${w.token || ''}>${w.token ? words.token(w.token) : 'no token'}</span>
          <span class="verdict">${w.accepted && !w.stale ? '✓' : w.accepted ? '!' : '✕'} ${verdict(w)}</span></li>`)}
        ${writes.length === 0 && html`<li class="nothing">no write yet</li>`}
      </ol>
    </section>`;
  }
}
