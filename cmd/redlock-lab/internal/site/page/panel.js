// The settings of a scenario, and the seeds of the fault lab.

import { html } from './vendor/htm-preact.js';
import { defaults } from './address.js';

function Field({ name, label, hint, value, change, ...rest }) {
  const id = `set-${name}`;
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} name=${name} value=${value} aria-describedby=${hint ? `${id}-hint` : undefined} onChange=${(e) => { if (e.currentTarget.reportValidity()) change(name, e.currentTarget.value.trim()); }} required ...${rest} />
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}</div>`;
}

function Switch({ name, label, hint, on, change }) {
  return html`<label class="switch"><input type="checkbox" name=${name} checked=${on} onChange=${(e) => change(name, e.currentTarget.checked ? '1' : '')} />
    <span>${label}<small>${hint}</small></span></label>`;
}

export function Panel({ run, change, openSim, openScenario }) {
  const isSim = run.mode === 'sim';
  const at = (name) => run.settings[name] ?? defaults[name];
  const on = (name) => at(name) === '1';
  const form = html`
    <p class="faint">A change starts the run again from 0, with the same actions.</p>
    <div class="switches">
      <${Switch} name="fencing" label="Fencing" hint="locks have growing tokens" on=${on('fencing')} change=${change} />
      <${Switch} name="guard" label="RestartGuard" hint="a master that may have forgotten has no vote" on=${on('guard')} change=${change} />
      <${Switch} name="fair" label="Fair" hint="newcomers join the queue" on=${on('fair')} change=${change} />
      <${Switch} name="draw" label="Draw faults" hint="the seed breaks things in the first 30 s" on=${on('draw')} change=${change} />
    </div>
    <div class="fields">
      <${Field} name="nodes" label="Masters" type="number" min="1" max="9" value=${at('nodes')} change=${change} />
      <${Field} name="clients" label="Clients" type="number" min="1" max="9" value=${at('clients')} change=${change} />
      <${Field} name="ttl" label="Ttl" hint="100ms to 1m" pattern="[0-9]+(ms|s|m)" title="such as 500ms, 5s or 1m" value=${at('ttl')} change=${change} />
      <${Field} name="timeout" label="NodeTimeout" hint="10ms to 5s" pattern="[0-9]+(ms|s|m)" title="such as 500ms, 5s or 1m" value=${at('timeout')} change=${change} />
      <${Field} name="latency" label="Latency" hint="one way, 0s to 1s" pattern="[0-9]+(ms|s|m)" title="such as 500ms, 5s or 1m" value=${at('latency')} change=${change} />
      <${Field} name="seed" label="Seed" pattern="[0-9]{1,20}" inputmode="numeric" value=${at('seed')} change=${change} />
    </div>`;
  const submit = (event) => {
    event.preventDefault();
    openSim(`sim=${encodeURIComponent(event.currentTarget.elements.sim.value.trim() || '1')}`);
  };
  return html`<details class="settings"><summary>Settings</summary>
    ${isSim ? html`<p>This is a seed of the fault lab. The seed has drawn all settings and faults, so nothing can be changed here.</p>
      <button type="button" onClick=${openScenario}>Back to your own scenario</button>` : form}
    <form class="sim" onSubmit=${submit}><p><b>Seed of the fault lab.</b> The seed draws everything: settings, what clients do, faults.</p>
      <div class="row"><label for="sim-seed" class="hidden">Seed of the fault lab</label><input id="sim-seed" name="sim" inputmode="numeric" placeholder="42" />
      <button type="submit">Run the seed</button></div></form>
  </details>`;
}
