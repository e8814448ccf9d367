import { after, happened, holds, lacks } from './conditions.js';

export const tour = {
  name: 'third-dies',
  title: 'The third one dies',
  steps: [
    {
      title: 'Two are dead already',
      text: ['Client 1 holds the lock, and masters 1 and 2 are down. Three of five are left: just enough.', 'Kill master 3.'],
      start: 'timeout=1s&latency=80ms&ttl=8s&do=200-acquire-c1,1200-kill-m1,1200-kill-m2&until=1600', use: ['kill-m3'], until: after(400),
    },
    {
      title: 'No way to extend',
      text: ['The lock is still valid: client 1 was promised it for a time, and the promise needs no master.', 'But it cannot get more time. Extend the lock and see.'],
      use: ['extend-c1'], until: happened('not extended', 1),
    },
    {
      title: 'The end comes on time',
      text: ['Only two masters could answer, and three are needed. Client 1 may work until its time is over, and no longer.', 'Its own clock ends the lock, so it needs no network to know.'],
      speed: 3, until: lacks(1),
    },
    {
      title: 'Nobody gets in',
      text: ['The lock is over, and its context is done. Nobody can get a new one: a lock without a majority would be no lock.', 'Let client 2 try once.'],
      use: ['try-c2'], until: happened('denied', 2),
    },
    {
      title: 'Back to a majority',
      text: ['Refused: too few masters answer. Redlock would rather stop than give the lock to two.', 'Restart master 1, then acquire the lock for client 2.'],
      use: ['restart-m1', 'acquire-c2'], until: holds(2),
    },
    {
      title: 'It goes on',
      text: ['With three of five masters, the next client has the lock at once. Nothing needed to be repaired.', 'While there was no majority, work stopped. It was never done twice.'],
    },
  ],
};
