import type { Hint } from '../redis/hints.ts';
import type { IngressOperations } from '../redis/ingress-store.ts';
import type { IngressStore } from './ingress/store.ts';
import { queueMember } from './router/queue-member.ts';

/**
 * Stores events and sees to it that a router looks at them. While one is at work on the queue, storing them is enough: it
 * goes on until it finds the queue empty, and says so in the step that finds it. Otherwise the queue's hint is lowered,
 * after the events are stored and before anybody is told: a hint that was lowered earlier may be used up by then.
 */
export function createIngestion(deps: {
  readonly operations: IngressOperations;
  readonly lower: (hints: readonly Hint[]) => Promise<void>;
  readonly nowMs: () => number;
}): IngressStore {
  const { operations, lower, nowMs } = deps;
  return {
    readQueue: operations.readQueue,
    checkKey: operations.checkKey,
    ingest: async (tenant, queue, config, items) => {
      const { outcomes, awake } = await operations.ingest(tenant, queue, config, items);
      const stored = outcomes.some(({ answer }) => answer === 'OK' || answer === 'DUP');
      if (awake || !stored) return { answers: outcomes };
      return { answers: outcomes, seen: lower([{ member: queueMember(tenant, queue), dueMs: nowMs() }]) };
    },
  };
}
