// The host of the module: the few WASI calls that it makes. The clock goes on by a fixed step with
// each reading and the random numbers are always the same, so a history repeats to the byte.

const step = 1000n; // nanoseconds that a reading of the clock takes
const epoch = 946684800n * 1000000000n; // 2000-01-01
const mask = (1n << 64n) - 1n;
const badDescriptor = 8;

// Exit is thrown when the module ends its process.
export class Exit extends Error {}

// host returns the imports of an instance. write gets the bytes that the module writes to a descriptor.
function host(write) {
  let memory = null;
  let view = null;
  let time = 0n;
  let state = 0n;
  let word = 0n;
  let left = 0;

  const data = () => {
    if (view === null || view.buffer !== memory.buffer) view = new DataView(memory.buffer);
    return view;
  };
  const random = () => {
    if (left === 0) {
      state = (state + 0x9e3779b97f4a7c15n) & mask;
      let z = state;
      z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
      z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
      word = z ^ (z >> 31n);
      left = 8;
    }
    const byte = Number(word & 255n);
    word >>= 8n;
    left--;
    return byte;
  };
  const none = (countAt, sizeAt) => {
    data().setUint32(countAt, 0, true);
    data().setUint32(sizeAt, 0, true);
    return 0;
  };

  const calls = {
    args_sizes_get: none,
    args_get: () => 0,
    environ_sizes_get: none,
    environ_get: () => 0,
    clock_time_get(id, _precision, at) {
      time += step;
      data().setBigUint64(at, id === 0 ? time + epoch : time, true);
      return 0;
    },
    random_get(at, n) {
      const bytes = new Uint8Array(memory.buffer, at, n);
      for (let i = 0; i < n; i++) bytes[i] = random();
      return 0;
    },
    fd_read: () => badDescriptor,
    fd_close: () => 0,
    fd_fdstat_get(fd, at) {
      if (fd > 2) return badDescriptor;
      for (let i = 0; i < 24; i++) data().setUint8(at + i, 0);
      data().setUint8(at, 2); // a character device
      return 0;
    },
    fd_fdstat_set_flags: () => 0,
    fd_prestat_get: () => badDescriptor,
    fd_prestat_dir_name: () => badDescriptor,
    fd_write(fd, vectors, count, writtenAt) {
      let written = 0;
      for (let i = 0; i < count; i++) {
        const at = data().getUint32(vectors + 8 * i, true);
        const size = data().getUint32(vectors + 8 * i + 4, true);
        write(fd, new Uint8Array(memory.buffer, at, size));
        written += size;
      }
      data().setUint32(writtenAt, written, true);
      return 0;
    },
    // poll_oneoff is asked for timers alone. The clock jumps to them.
    poll_oneoff(subscriptions, events, count, countAt) {
      const d = data();
      for (let i = 0; i < count; i++) {
        const from = subscriptions + 48 * i;
        const to = events + 32 * i;
        const kind = d.getUint8(from + 8);
        if (kind === 0) {
          const timeout = d.getBigUint64(from + 24, true);
          const absolute = (d.getUint16(from + 40, true) & 1) === 1;
          if (!absolute) time += timeout;
          else if (timeout > time) time = timeout;
        }
        d.setBigUint64(to, d.getBigUint64(from, true), true);
        d.setUint16(to + 8, 0, true);
        d.setUint8(to + 10, kind);
      }
      d.setUint32(countAt, count, true);
      return 0;
    },
    sched_yield: () => 0,
    proc_exit(code) {
      throw new Exit(`the simulation ended with status ${code}`);
    },
  };
  return { calls, attach: (m) => { memory = m; } };
}

// load fetches and compiles the module. It returns a function that makes instances.
export async function load(url, progress) {
  progress('Loading the simulation');
  const late = setTimeout(() => progress('Loading the simulation. It is compiled when it is first needed, which takes about a minute.'), 4000);
  const response = await fetch(url);
  clearTimeout(late);
  if (!response.ok) throw new Error((await response.text()).trim() || `cannot load ${url}: status ${response.status}`);
  progress('Compiling the simulation');
  const module = await WebAssembly.compile(await unpacked(await response.arrayBuffer()));
  return () => instance(module);
}

// unpacked decompresses bytes, unless the server's headers have made the browser do it.
async function unpacked(bytes) {
  const [first, second] = new Uint8Array(bytes, 0, 2);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

// instance makes one: text is called with what the module writes, in pieces, and complaint with diagnostics.
function instance(module) {
  const decode = [null, new TextDecoder(), new TextDecoder()];
  const guest = { text: () => {}, complaint: () => {} };
  const { calls, attach } = host((fd, bytes) => {
    const text = decode[fd].decode(bytes, { stream: true });
    if (fd === 1) guest.text(text);
    else guest.complaint(text);
  });
  const imports = {};
  for (const { name } of WebAssembly.Module.imports(module)) {
    imports[name] = calls[name] || (() => { throw new Error(`the simulation calls ${name}, which the page does not have`); });
  }
  const { exports } = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
  attach(exports.memory);
  exports._initialize();
  const buffer = exports.buffer();
  const put = (text) => {
    const bytes = new TextEncoder().encode(text);
    new Uint8Array(exports.memory.buffer).set(bytes, buffer);
    return bytes.length;
  };
  guest.begin = (fragment) => exports.begin(put(fragment));
  guest.advance = (words) => exports.advance(words === '' ? 0 : put(words));
  return guest;
}
