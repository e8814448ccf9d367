// The menu of a link that was clicked.

import { html, render } from './vendor/htm-preact.js';
import { Group, linkActs } from './actions.js';
import { action } from './words.js';

export class LinkMenu {
  constructor(root) {
    this.root = root;
    document.addEventListener('pointerdown', (event) => { if (!root.contains(event.target)) this.close(); });
    document.addEventListener('keydown', (event) => { if (event.key === 'Escape') this.close(); });
    root.addEventListener('click', (event) => { if (event.target.closest('.act')) this.close(); });
  }

  open(link, event) {
    const [client, node] = link.match(/\d/g);
    const acts = linkActs(link, `the link of client ${client} to master ${node}`);
    render(html`<div class="menu floating" role="dialog" aria-label=${action(`heal-${link}`).split(':')[0]}>
      <${Group} title=${`Client ${client} to master ${node}`} acts=${acts} /></div>`, this.root);
    const menu = this.root.firstElementChild;
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(event.clientX - width / 2, document.documentElement.clientWidth - width - 8))}px`;
    menu.style.top = `${Math.max(8, Math.min(event.clientY + 12, innerHeight - height - 8))}px`;
    menu.querySelector('button').focus({ preventScroll: true });
  }

  close() { render(null, this.root); }
}
