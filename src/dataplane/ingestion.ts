import type { Hint } from '../redis/hints.ts';
import type { IngressOperations } from '../redis/ingress-store.ts';
import type { IngressStore } from './ingress/store.ts';
import { queueMember } from './router/queue-member.ts';

/** Beyond this, a hint that was lowered before its events says that ingress has died in between. */
const LOST_INGEST_MS = 2_000;

/**
 * Stores events and wakes the router. The hint is lowered to two seconds from now with the events, and to now when they
 * are stored: if this process dies in between, the router looks then, and nothing has to be swept.
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
      const member = queueMember(tenant, queue);
      const early = lower([{ member, dueMs: nowMs() + LOST_INGEST_MS }]);
      const [answers] = await Promise.all([operations.ingest(tenant, queue, config, items), early]);
      // Not awaited: what is acknowledged is stored, and the early hint is there.
      lower([{ member, dueMs: nowMs() }]).catch(() => {});
      return answers;
    },
  };
}
