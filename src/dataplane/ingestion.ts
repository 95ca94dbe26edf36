import type { Hint } from '../redis/hints.ts';
import type { IngressOperations } from '../redis/ingress-store.ts';
import type { IngressStore } from './ingress/store.ts';
import { queueMember } from './router/queue-member.ts';

/**
 * Stores events and ensures that a router will process them. If a router is already working on the queue, storing is
 * enough: it continues until the queue is empty, and announces this in the very step that finds it empty. Otherwise we
 * need to lower the queue's hint. This must happen after the events are stored (a hint lowered earlier may be used up
 * by then) and before anybody is notified.
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
