import { after, holds, violated, wrote } from './conditions.js';

export const tour = {
  name: 'late-write',
  title: 'A paused holder writes late',
  steps: [
    {
      title: 'A lock with a number',
      text: ['Client 1 asks for the lock. With Fencing each lock has a token, a number that grows from lock to lock.', 'The protected resource remembers the highest token that it has seen.'],
      start: 'timeout=1s&latency=80ms&ttl=3s&fencing=1&do=200-acquire-c1', speed: 0.3, until: holds(1),
    },
    {
      title: 'Stop it in the middle',
      text: ['Client 1 now works for a second and then writes. Let it begin, then pause it: a long garbage collection, or a stopped container.', 'A paused process does not notice that time goes by.'],
      speed: 0.1, use: ['write-c1', 'pause-c1'], until: after(50),
    },
    {
      title: 'The next one comes',
      text: ['Client 1 stands still, and still believes in its lock. On the masters its time runs out.', 'Acquire the lock for client 2. It waits until the key is free.'],
      use: ['acquire-c2'], until: holds(2),
    },
    {
      title: 'Client 2 writes',
      text: ['Client 2 has the lock, with a higher token. That is no mistake: the time of client 1 is over.', 'Let client 2 work and write.'],
      use: ['write-c2'], until: wrote((w) => w.client === 2),
    },
    {
      title: 'The late write',
      text: ['The resource has seen the token of client 2. Now let client 1 continue.', 'It goes on where it stood, and sends its write.'],
      use: ['continue-c1'], until: wrote((w) => w.client === 1),
    },
    {
      title: 'Refused',
      text: ['The resource refused the late write, as its token is lower than one that it has seen. No lock can do that: only the resource can.', 'Next, the same without Fencing.'],
    },
    {
      title: 'The same without tokens',
      text: ['The same actions again, with Fencing off. Watch the resource when client 1 wakes up.'],
      change: { fencing: '' }, speed: 3, until: violated,
    },
    {
      title: 'Overwritten',
      text: ['The late write was accepted, over the newer one of client 2. Nobody broke a rule of the lock: client 1 came too late and could not know.', 'So give what you protect a token to check.'],
    },
  ],
};
