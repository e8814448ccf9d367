// The address of a run: settings and actions in the fragment, and the playhead.

export const ms = 1e6; // nanoseconds in a millisecond
export const tick = 2; // milliseconds of virtual time in a tick

// defaults are the module's own, which an address leaves out.
export const defaults = {
  seed: '1', nodes: '5', clients: '3', ttl: '5s', timeout: '400ms', latency: '40ms',
  fencing: '', guard: '', fair: '', slots: '0', draw: '',
};

// newcomer is what a page without a fragment shows. Links are slow enough to follow by eye.
export const newcomer = 'ttl=10s&timeout=1s&latency=80ms&fencing=1&do=0-work-c1,0-work-c2,0-work-c3';

// parse reads a fragment. A sim run keeps its text: the module reads it.
export function parse(fragment) {
  const text = fragment.replace(/^#/, '');
  const params = new URLSearchParams(text);
  const until = params.has('until') ? Number(params.get('until')) : null;
  if (params.has('sim')) {
    params.delete('until');
    return { mode: 'sim', sim: readable(params), settings: {}, actions: [], until };
  }
  const settings = {};
  const actions = [];
  for (const [name, value] of params) {
    if (name === 'do') actions.push(...value.split(',').filter(Boolean).map(parseAction));
    else if (name !== 'until') settings[name] = value;
  }
  return { mode: 'scenario', sim: '', settings, actions, until };
}

// parseAction reads "MS-VERB-TARGET[-ARG]". The module judges the words.
function parseAction(text) {
  const cut = text.indexOf('-');
  return { ms: Number(text.slice(0, cut)), word: text.slice(cut + 1) };
}

// format writes a fragment. Settings that the module has anyway are left out.
export function format({ mode, sim, settings, actions }, until = null) {
  if (mode === 'sim') return until === null ? sim : `${sim}&until=${until}`;
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(settings)) {
    if (value !== '' && value !== undefined && value !== defaults[name]) params.set(name, value);
  }
  if (actions.length > 0) params.set('do', actions.map((a) => `${a.ms}-${a.word}`).join(','));
  if (until !== null) params.set('until', String(until));
  const text = readable(params);
  return text || `seed=${settings.seed || defaults.seed}`;
}

// readable leaves commas as they are: a list of actions should be legible in the address.
function readable(params) {
  return params.toString().replaceAll('%2C', ',');
}

// duration reads "400ms", "5s" or "1m" as milliseconds.
export function duration(text) {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text || '');
  if (!match) return NaN;
  return Number(match[1]) * { ms: 1, s: 1000, m: 60000 }[match[2]];
}
