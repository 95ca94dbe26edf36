import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../../../redis/client.ts';
import { inboxMember } from '../../../redis/inbox-store.ts';
import { integrationKeys } from '../../../redis/keys.ts';
import { event, QUEUE } from '../../../redis/testing/tenant.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createEventCache } from '../../dispatcher/event-cache.ts';
import { createWorker } from '../../dispatcher/worker.ts';
import { routeQueue } from '../../router/queue.ts';
import { type Sandbox, testKeys } from './sandbox.ts';
import { answering, EVENTS, NAMES, outcomeOf } from './twin.ts';

/** How many events were routed to an integration and how they ended; absent for none. */
export async function countersOf(redis: RedisClient, { t }: Sandbox, name: string): Promise<Record<string, string>> {
  const fields = await redis.readHash(integrationKeys(t.nameOf(name)).sub(`sub_${name}`));
  return Object.fromEntries(Object.entries(fields).filter(([field]) => field.startsWith('n:')));
}

/** Returns the tokens that the events of these integrations cost. */
export async function tokensOf(redis: RedisClient, { t }: Sandbox, names: readonly string[]): Promise<number> {
  const ledgers = await Promise.all(names.map(name => redis.readHash(integrationKeys(t.nameOf(name)).ledger)));
  return ledgers.reduce((sum, ledger) => sum + Number(ledger[t.account] ?? 0), 0);
}

/** Publishes the events to production, where they are routed and delivered until nothing is due. */
export async function runQueueProduction(redis: RedisClient, s: Sandbox) {
  const ids = await publishAll(s);
  return {
    outcome: await outcomeOf(redis, s, ids),
    counters: await countersOf(redis, s, 'x'),
    tokens: await tokensOf(redis, s, NAMES),
  };
}

async function publishAll(s: Sandbox): Promise<Map<string, string>> {
  const { t } = s;
  const config = await t.ingress.readQueue(t.tenant, QUEUE);
  if (config === null || config === 'unavailable') throw new Error('no queue');
  const ids = new Map<string, string>();
  for (const [i, [groupKey, simulation]] of EVENTS.entries()) {
    const { outcomes } = await t.ingress.ingest(t.tenant, QUEUE, config, [{ ...event(`e${i}`, groupKey), simulation }]);
    const [outcome] = outcomes;
    if (outcome?.answer === 'OK') ids.set(outcome.ref, `e${i}`);
  }
  const made = new Map<string, number>();
  await routeQueue(
    {
      queues: t.queues,
      inboxes: t.inboxes,
      ledger: t.ledger,
      lower: async () => {},
      alarm: () => {},
      nowMs: t.nowMs,
      owner: 'router',
      onBatch: () => {},
      signal: new AbortController().signal,
    },
    t.queue,
    new Map(),
  );
  for (;;) {
    const dues = await Promise.all(NAMES.filter(name => name !== 'pulls').map(name => deliverDue(s, name, made)));
    const next = dues.filter(ms => ms !== null && ms > t.clock.ms) as number[];
    if (next.length === 0) return ids;
    t.clock.ms = Math.min(...next);
  }
}

/** Works one inbox until nothing of it is due; answers when something is. */
async function deliverDue(s: Sandbox, name: string, made: Map<string, number>): Promise<number | null> {
  const { t } = s;
  const worker = createWorker(
    {
      inboxes: t.inboxes,
      readEvents: createEventCache(t.inboxes, 1_000_000),
      keys: testKeys,
      version: '0',
      opened: new Map(),
      room: { free: 16, waiting: new Set() },
      nextToken: randomUUID,
      alarm: () => {},
      log: createLogger({ level: 'silent' }),
      signal: new AbortController().signal,
      nowMs: t.nowMs,
      wallMs: t.nowMs,
      monotonicMs: () => 0,
      random: () => 0.5,
      onAttempt: () => {},
      attempt: answering(name, made),
    },
    inboxMember(t.inboxOf(name)),
  );
  return worker.run();
}
