// Conditions that end a step of a tour. A view has the history, the playhead, and where it was at the
// begin of the step.

import { holding } from '../words.js';

export const holds = (c) => ({ history, at }) => holding(history.client(c, at), at).length > 0;

export const lacks = (c) => (view) => !holds(c)(view);

// after is true once a time has passed in the step, in milliseconds of virtual time.
export const after = (time) => ({ at, from }) => at - from > time * 1e6;

export const all = (...conditions) => (view) => conditions.every((condition) => condition(view));

export const any = (...conditions) => (view) => conditions.some((condition) => condition(view));

// happened is true if an event of a kind lies between the begin of the step and the playhead.
export const happened = (kind, client, since = 'from') => ({ history, at, from }) => history.events.some(
  ({ event }) => event.kind === kind && event.at <= at && (since !== 'from' || event.at >= from) && (!client || event.client === client),
);

// waits is true while a client cannot get the lock in the round that it has under way.
export const waits = (c) => ({ history, at }) => history.client(c, at)?.state === 'waiting';

export const guarded = ({ run }) => run.settings.guard === '1';

export const wrote = (test) => ({ history, at }) => (history.resource(at)?.writes || []).some(test);

export const violated = ({ history, at }) => history.violations.length > 0 && history.violations[0].at <= at;
