import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { isAfter } from '../core/ids/refs.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import { createHintIndex, type HintIndex } from '../redis/hints.ts';
import type { IngressQueue } from '../redis/ingress-store.ts';
import { hintPartition, queueKeys } from '../redis/keys.ts';
import { OWNER_LEASE_MS } from '../redis/queue-store.ts';
import { createRoutingReader } from '../redis/routing-reader.ts';
import { createTenant, event, QUEUE, type Tenant } from '../redis/testing/tenant.ts';
import { createLogger } from '../telemetry/log.ts';
import { createIngestion } from './ingestion.ts';
import { routeQueue } from './router/queue.ts';
import { queueMember } from './router/queue-member.ts';
import { type Actor, everySchedule, interleave, type Step } from './testing/interleaving.ts';

/** Whatever is lost on the way, a router looks within this. */
const LOOKED_AT_WITHIN_MS = OWNER_LEASE_MS + 1_000;

/**
 * Ingress that lowers no hint while a router is at work, beside that router: call by call, in every order, with either
 * of them dying. What was acknowledged is always seen by a router that comes later.
 */
describe('ingestion and router', () => {
  let client: RedisClient | undefined;
  const redis = () => client as RedisClient;
  beforeAll(async () => {
    client = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  });
  afterAll(() => client?.close());

  async function work(t: Tenant, hints: HintIndex, owner: string, step: Step): Promise<void> {
    const member = queueMember(t.tenant, QUEUE);
    const partition = hintPartition(member);
    const { queues, inboxes } = t;
    const token = randomUUID();
    const { members } = await step('pick', () => hints.pick(partition, t.clock.ms, 1_000, OWNER_LEASE_MS, token));
    if (!members.includes(member)) return;
    const next = await routeQueue(
      {
        owner,
        batchEvents: 1,
        nowMs: t.nowMs,
        signal: new AbortController().signal,
        alarm: () => {},
        onBatch: () => {},
        lower: async () => {},
        inboxes,
        ledger: t.ledger,
        queues: {
          ...queues,
          own: (...args) => step('own', () => queues.own(...args)),
          next: (...args) => step('next', () => queues.next(...args)),
        },
      },
      t.queue,
      new Map(),
    );
    await step('settle', () => hints.settle(partition, member, token, next));
  }

  function router(t: Tenant, hints: HintIndex, faults: Actor['faults']): Actor {
    return {
      name: 'router',
      faults,
      run: async step => {
        for (let times = 0; times < 2; times++) await work(t, hints, 'router', step);
      },
    };
  }

  /** `acknowledged` counts the events that a sender was told to be stored. */
  function ingress(t: Tenant, hints: HintIndex, config: IngressQueue, acknowledged: { count: number }): Actor {
    return {
      name: 'ingress',
      faults: ['crash', 'not done', 'answer lost'],
      run: async step => {
        const ingestion = createIngestion({
          nowMs: t.nowMs,
          lower: hint => step('lower', () => hints.lower(hint)),
          operations: { ...t.ingress, ingest: (...args) => step('ingest', () => t.ingress.ingest(...args)) },
        });
        for (let batch = 0; batch < 3; batch++) {
          // What fails is not acknowledged; the sender may repeat it, or not.
          try {
            const { answers, seen } = await ingestion.ingest(t.tenant, QUEUE, config, [event(`e${batch}`, 'k')]);
            await seen;
            if (answers[0]?.answer === 'OK') acknowledged.count++;
          } catch {}
        }
      },
    };
  }

  test('an event is stored with the id of its sender, or with one that is generated', async () => {
    const t = createTenant(redis());
    await t.apply(t.routes({}));
    const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
    const ingestion = createIngestion({ nowMs: t.nowMs, lower: async () => {}, operations: t.ingress });
    const without = { ...event('', 'k'), id: undefined };
    const items = [event('e', 'k'), without, without, event('e', 'k')];
    const { answers } = await ingestion.ingest(t.tenant, QUEUE, config, items);
    const generated = expect.stringMatching(/^evt_[0-9a-hjkmnp-tv-z]{26}$/);
    expect(answers).toMatchObject([
      { answer: 'OK', id: 'e' },
      { answer: 'OK', id: generated },
      { answer: 'OK', id: generated },
      { answer: 'DUP', id: 'e' },
    ]);
    const reader = createRoutingReader(redis(), t.nowMs);
    for (const answer of answers) {
      const { id, ref } = answer as { id: string; ref: string };
      expect(await reader.findEvent(t.tenant, QUEUE, { eventId: id })).toMatchObject({ ref, meta: { id } });
    }
    expect(new Set(answers.map(answer => ('ref' in answer ? answer.ref : ''))).size).toBe(3);
  });

  test.each([
    { preemptions: 3, faults: 0 },
    { preemptions: 2, faults: 1 },
  ])('nothing acknowledged is overlooked: %j', async bounds => {
    let quick = 0;
    const runs = await everySchedule(bounds, async choose => {
      const t = createTenant(redis());
      await t.apply(t.routes({}));
      const hints = createHintIndex(redis(), 'r');
      const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as IngressQueue;
      const acknowledged = { count: 0 };
      const trace = await interleave([ingress(t, hints, config, acknowledged), router(t, hints, ['crash'])], choose);
      const of = (call: string) => trace.filter(line => line === `ingress ${call}`).length;
      if (of('ingest') > of('lower')) quick++;
      t.clock.ms += LOOKED_AT_WITHIN_MS;
      await work(t, hints, 'a later router', (_label, call) => call());
      const { meta, events } = queueKeys(t.tenant, QUEUE, config.gen);
      const stored = (await redis().call('xrange', events, '-', '+')) as [string, string[]][];
      const cursor = ((await redis().call('hget', meta, 'cur')) as string | null) ?? '0-0';
      const overlooked = stored.filter(([id]) => isAfter(id, cursor)).length;
      expect(stored.length - overlooked, trace.join('\n')).toBeGreaterThanOrEqual(acknowledged.count);
    });
    expect(runs).toBeGreaterThan(50);
    expect(quick).toBeGreaterThan(10);
  });
});
