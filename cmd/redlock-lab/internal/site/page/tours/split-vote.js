import { happened } from './conditions.js';

const denied = (view) => [1, 2, 3].every((c) => happened('denied', c, 'ever')(view));
const served = (view) => [1, 2, 3].every((c) => happened('granted', c, 'ever')(view));

export const tour = {
  name: 'split-vote',
  title: 'A split vote, and the queue that ends it',
  steps: [
    {
      title: 'Three at one instant',
      text: ['Three clients try to get the lock at the same instant. Requests take different times on different links, so each master may see another client first.'],
      start: 'timeout=1s&latency=80ms&seed=1&do=500-try-c1,500-try-c2,500-try-c3', speed: 0.1, until: denied,
    },
    {
      title: 'Nobody won',
      text: ['Each client got some votes, and none got three. They gave back what they had, and the lock is free.', 'If they all tried again at once, it could go on like this.'],
    },
    {
      title: 'Now with a queue',
      text: ['This time the clients wait, and each master keeps a queue. A release wakes the client with the lowest ticket, and tickets are the same on all masters.', 'With Fair, newcomers join the queue too.'],
      start: 'timeout=1s&latency=80ms&fair=1&seed=1&do=500-work-c1,500-work-c2,500-work-c3', speed: 1, until: served,
    },
    {
      title: 'One after the other',
      text: ['Each client has had the lock once. The masters decided who gets it; the queue decided who asks.', 'A queue may be wrong or lost and nothing breaks. It only takes longer.'],
    },
  ],
};
