import { after, holds } from './conditions.js';

export const tour = {
  name: 'two-die',
  title: 'Two masters die, and nothing happens',
  steps: [
    {
      title: 'A majority is enough',
      text: ['Client 1 asks all five masters for the lock. Each of them votes on its own: they do not know each other.', 'With three votes of five, client 1 has the lock.'],
      start: 'timeout=1s&latency=80ms&ttl=20s&do=200-acquire-c1', speed: 0.3, until: holds(1),
    },
    {
      title: 'Kill two masters',
      text: ['Client 1 holds the lock. The masters store its key, and the bars show how long.', 'Kill master 1 and master 2.'],
      use: ['kill-m1', 'kill-m2'], until: after(700),
    },
    {
      title: 'The lock lives on',
      text: ['Three masters still have the key, and no other client can find three others. So client 1 holds the lock as before.', 'It can even extend the lock. Try it.'],
      use: ['extend-c1'], until: after(1500),
    },
    {
      title: 'Hand it over',
      text: ['Three votes of five were enough to extend. They are enough for a new lock too.', 'Release the lock of client 1, and acquire it for client 2.'],
      use: ['release-c1', 'acquire-c2'], until: holds(2),
    },
    {
      title: 'Nothing happened',
      text: ['Client 2 has the lock by the votes of the three masters that are left. Nobody waited for the dead ones.', 'Five masters survive the death of any two.'],
    },
  ],
};
