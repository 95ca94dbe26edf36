import type { TestPart } from '../../../../test/support/part/part.ts';
import type { SweepState } from '../due.ts';
import { createSweep } from '../sweep.ts';

/**
 * Sweeps until there is nothing left to remove. Returns the items that were removed, the number of calls until the last
 * event was removed, and the time of the next sweep.
 */
export async function sweepAll(t: TestPart, state: SweepState = {}) {
  const sweep = createSweep(t.client);
  const sum = {
    events: 0,
    expired: 0,
    neverRouted: 0,
    calls: 0,
    eventCalls: 0,
    dueInMs: undefined as number | undefined,
  };
  while (sum.calls < 500) {
    const answer = await sweep(t.part, state);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    sum.calls++;
    sum.events += answer.events;
    if (answer.events > 0) sum.eventCalls = sum.calls;
    sum.expired += answer.expired;
    sum.neverRouted += answer.neverRouted;
    sum.dueInMs = answer.dueInMs;
    if (!answer.more) return sum;
  }
  throw new Error('there is always more to do');
}
