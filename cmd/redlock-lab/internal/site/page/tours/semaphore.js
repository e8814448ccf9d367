import { holds, violated } from './conditions.js';

export const tour = {
  name: 'semaphore',
  title: 'Why two slots let three in',
  steps: [
    {
      title: 'A counting semaphore',
      text: ['This run has no lock. It is an obvious idea for a semaphore of two slots: each master lets two clients in, and a majority of masters decides.', 'Some links are cut, as networks do. Let client 1 acquire a slot.'],
      start: 'slots=2&timeout=1s&latency=80ms&ttl=20s&do=0-cut-c1-m4,0-cut-c1-m5,0-cut-c2-m1,0-cut-c2-m2,0-cut-c3-m3', speed: 0.3, use: ['acquire-c1'], until: holds(1),
    },
    {
      title: 'The second slot',
      text: ['Client 1 is in, by the votes of masters 1, 2 and 3. Each of them has one slot left.', 'Let client 2 acquire.'],
      speed: 0.3, use: ['acquire-c2'], until: holds(2),
    },
    {
      title: 'Both slots are taken',
      text: ['Client 2 is in, by masters 3, 4 and 5. Two clients are in, and that should be all.', 'But only master 3 is full. Let client 3 acquire.'],
      speed: 0.3, use: ['acquire-c3'], until: violated,
    },
    {
      title: 'Three are in',
      text: ['Five masters with two slots have ten votes, and three clients need only nine. Two majorities share a master, but that master may have room for both.', 'With one slot it has room for one, and that is what makes Redlock a lock.'],
    },
  ],
};
