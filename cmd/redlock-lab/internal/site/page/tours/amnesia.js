import { after, all, any, guarded, happened, holds, violated, waits } from './conditions.js';

export const tour = {
  name: 'amnesia',
  title: 'Masters that forget give two holders',
  steps: [
    {
      title: 'One holder',
      text: ['Client 1 asks for the lock. Five masters store its key in memory.'],
      start: 'timeout=1s&latency=80ms&ttl=10s&fencing=1&do=200-acquire-c1', speed: 0.3, until: holds(1),
    },
    {
      title: 'Make three forget',
      text: ['Client 1 holds the lock for ten seconds. A master that restarts without its memory does not know that.', 'Let masters 1, 2 and 3 forget.'],
      speed: 0.3, use: ['forget-m1', 'forget-m2', 'forget-m3'], until: after(300),
    },
    {
      title: 'Ask them again',
      text: ['Three masters are up and empty. Three votes are a majority.', 'Let client 2 ask for the lock.'],
      speed: 0.3, use: ['try-c2'], until: violated,
    },
    {
      title: 'Two holders',
      text: ['Both clients have a majority, and both believe that they hold the lock. The run stops here and says which rule is broken.', 'Press “Try again with RestartGuard”: it replays what you did, with the guard.'],
      use: ['[data-do="again"]'], until: all(guarded, any(happened('denied', 2, 'ever'), waits(2))),
    },
    {
      title: 'Refused this time',
      text: ['With the guard, the votes of a restarted master do not count until every key that it may have forgotten is over.', 'So client 2 found no majority, and client 1 is alone.'],
    },
    {
      title: 'The price',
      text: ['For one ttl, too few masters have a vote, and nobody gets a new lock. After that they count again.', 'A master that writes every change to disk before it answers needs no guard.'],
      speed: 3,
    },
  ],
};
