// Contenders of node-redlock for the keys of a plan, which is the first argument:
// {"addrs": ["host:port"], "keys": ["a"], "hold": ms, "pause": ms, "expiry": ms}.
// Each key has one contender, with connections of its own; a key that is named twice has
// two. It prints "ready", and then for each lock the number of the key in the plan and
// for how many milliseconds it was waited for. It ends when its input does.
import { createRequire } from "node:module";
// The package's "import" entry is a CommonJS file in some versions.
const require = createRequire(import.meta.url);
const { default: Redlock } = require("redlock");
const { default: Redis } = require("ioredis");

const plan = JSON.parse(process.argv[2]);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));

const clients = plan.keys.map(() =>
  plan.addrs.map((addr) => {
    const [host, port] = addr.split(":");
    return new Redis({ host, port: Number(port) });
  }),
);
await Promise.all(clients.flat().map((c) => c.ping()));
console.log("ready");

await Promise.all(
  plan.keys.map(async (key, i) => {
    const redlock = new Redlock(clients[i]);
    for (;;) {
      const began = Date.now();
      let lock;
      while (!lock) {
        // Its ten tries are used up, and what they left is deleted: it goes on.
        lock = await redlock.acquire([key], plan.expiry).catch(() => undefined);
      }
      console.log(`${i} ${Date.now() - began}`);
      await sleep(plan.hold);
      await lock.release().catch(() => {});
      await sleep(plan.pause);
    }
  }),
);
