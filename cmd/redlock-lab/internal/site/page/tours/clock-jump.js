import { after, happened, holds, violated } from './conditions.js';

export const tour = {
  name: 'clock-jump',
  title: 'A clock that jumps',
  steps: [
    {
      title: 'Five clocks',
      text: ['Each master counts the time of a key by its own clock. Redlock needs clocks that run at the same speed; they need not show the same time.', 'Client 1 gets the lock for ten seconds.'],
      start: 'timeout=1s&latency=80ms&ttl=10s&do=200-acquire-c1', speed: 0.3, until: holds(1),
    },
    {
      title: 'One jumps',
      text: ['Set the clock of master 1 ten seconds ahead: its menu with the three dots has clocks.', 'For that master the ttl is over at once.'],
      speed: 0.3, use: ['ahead-m1-10000'], until: after(500),
    },
    {
      title: 'One clock is one vote',
      text: ['Master 1 has dropped the key. The other four still have it, so nobody else finds three votes.', 'Let client 2 try.'],
      speed: 0.3, use: ['try-c2'], until: happened('denied', 2),
    },
    {
      title: 'Three jump',
      text: ['Client 2 got one vote of five, and gave it back. Now set the clocks of masters 2 and 3 ahead as well, and let client 2 try again.'],
      speed: 0.3, use: ['ahead-m2-10000', 'ahead-m3-10000', 'try-c2'], until: violated,
    },
    {
      title: 'Too many at once',
      text: ['Three clocks have jumped, and a majority has dropped a key that client 1 relies on. Redlock does not promise safety then.', 'So let the masters’ clocks be slewed, not set: chrony and ntpd do that when told to.'],
    },
  ],
};
