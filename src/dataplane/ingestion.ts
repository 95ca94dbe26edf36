import { randomFillSync } from 'node:crypto';
import type { Hint } from '../redis/hints.ts';
import type { IngressEvent, IngressOperations } from '../redis/ingress-store.ts';
import { createEventIds, createRandom40 } from './ingress/event-id.ts';
import type { IngestAnswer, IngestItem, IngressStore } from './ingress/store.ts';
import { queueMember } from './router/queue-member.ts';

function hasId(item: IngestItem): item is IngestItem & IngressEvent {
  return item.id !== undefined;
}

/**
 * Stores events, with a generated id unless the sender set one, and ensures that a router will process them. If a
 * router is already working on the queue, storing is enough: it continues until the queue is empty, and announces this
 * in the very step that finds it empty. Otherwise we need to lower the queue's hint. This must happen after the events
 * are stored (a hint lowered earlier may be used up by then) and before anybody is notified.
 */
export function createIngestion(deps: {
  readonly operations: IngressOperations;
  readonly lower: (hints: readonly Hint[]) => Promise<void>;
  readonly nowMs: () => number;
}): IngressStore {
  const { operations, lower, nowMs } = deps;
  const nextEventId = createEventIds(nowMs, createRandom40(randomFillSync));
  return {
    readQueue: operations.readQueue,
    checkKey: operations.checkKey,
    ingest: async (tenant, queue, config, items) => {
      const events = items.map(item => (hasId(item) ? item : { ...item, id: nextEventId() }));
      const { outcomes, awake } = await operations.ingest(tenant, queue, config, events);
      const answers = outcomes.map((outcome, i): IngestAnswer => {
        return 'ref' in outcome ? { ...outcome, id: events[i]?.id as string } : outcome;
      });
      const stored = answers.some(answer => 'ref' in answer);
      if (awake || !stored) return { answers };
      return { answers, seen: lower([{ member: queueMember(tenant, queue), dueMs: nowMs() }]) };
    },
  };
}
