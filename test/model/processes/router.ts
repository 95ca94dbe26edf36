import { routeQueue } from '../../../src/dataplane/router/queue.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { createHintIndex } from '../../../src/redis/hints.ts';
import { createInboxStore } from '../../../src/redis/inbox-store.ts';
import { hintPartition } from '../../../src/redis/keys.ts';
import { createLedgerStore } from '../../../src/redis/ledger-store.ts';
import { createQueueStore, OWNER_LEASE_MS } from '../../../src/redis/queue-store.ts';
import type { Routing } from '../state/inbox-comparison.ts';

/** A router process: takes up due queues and routes each to its end, one after the other. */
export type Router = ReturnType<typeof createRouter>;

export function createRouter(redis: RedisClient, owner: string, nowMs: () => number) {
  const store = createQueueStore(redis);
  const inboxes = createInboxStore(redis);
  const queueHints = createHintIndex(redis, 'r');
  const inboxHints = createHintIndex(redis, 'd');
  const trimmed = new Map<string, number>();
  const signal = new AbortController().signal;
  let turns = 0;

  async function routeOne(member: string, token: string, said: Map<string, Routing>): Promise<void> {
    let held = false;
    let isShort = false;
    const queues: typeof store = {
      ...store,
      own: async (...args) => {
        const ownership = await store.own(...args);
        held = ownership.answer !== 'OK';
        if (!held) said.set(member, 'broken off');
        return ownership;
      },
    };
    const colon = member.indexOf(':');
    const queue = { tenant: member.slice(0, colon), queue: member.slice(colon + 1) };
    const deps = {
      queues,
      inboxes,
      ledger: createLedgerStore(redis),
      lower: inboxHints.lower,
      nowMs,
      alarm: () => {},
      signal,
      owner,
      onBatch: () => {},
      onHeld: () => {
        isShort = true;
      },
      // Small, so that a router may die between two batches.
      batchEvents: 3,
    };
    const dueMs = await routeQueue(deps, queue, trimmed);
    // Sooner: it was refused, or something was missing; another turn follows.
    if (isShort) said.set(member, 'held');
    else if (!held && (dueMs === null || dueMs > nowMs() + 1_000)) said.set(member, 'complete');
    await queueHints.settle(hintPartition(member), member, token, dueMs);
  }

  return {
    /** Routes what is due of the given queues (`ten_…:queue`); `said` tells of each how far it came, also after a death. */
    async work(members: readonly string[], said: Map<string, Routing>): Promise<void> {
      for (const partition of new Set(members.map(hintPartition))) {
        const token = `${owner}.${turns++}`;
        const picked = await queueHints.pick(partition, nowMs(), 100, OWNER_LEASE_MS, token);
        for (const member of picked.members) await routeOne(member, token, said);
      }
    },
  };
}
