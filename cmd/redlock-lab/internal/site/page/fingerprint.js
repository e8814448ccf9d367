// The fingerprint of a history: the command line makes the same of the same address.

// order is that of history.Sort: by time and node; where no node is meant, by client and operation.
function order(a, b) {
  const x = a.event;
  const y = b.event;
  const by = x.at - y.at || (x.node || 0) - (y.node || 0);
  if (by !== 0 || x.node) return by;
  return (x.client || 0) - (y.client || 0) || (x.op || 0) - (y.op || 0);
}

// fingerprint returns 16 hex digits of the events at or before a time.
export async function fingerprint(history, at) {
  const { sha256 } = await import('./vendor/noble-hashes/sha2.js');
  const hash = sha256.create();
  const encoder = new TextEncoder();
  for (const { line } of history.upTo(at).sort(order)) hash.update(encoder.encode(`${line}\n`));
  return [...hash.digest().slice(0, 8)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
