import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { parseEventProgress } from '../core/events/event-state.ts';
import { type Bucket, HISTORIES, RINGS, type Traffic } from '../core/events/series.ts';
import { tokensOf } from '../core/events/tokens.ts';
import { refOfStreamId } from '../core/ids/refs.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import type { Completion, InboxStore } from '../redis/inbox-store.ts';
import { createIngressOperations } from '../redis/ingress-store.ts';
import { BUCKET_MS, inboxKeys, queueKeys } from '../redis/keys.ts';
import { OWNER_LEASE_MS } from '../redis/queue-store.ts';
import { createTenant, event, QUEUE, START_MS, type Tenant } from '../redis/testing/tenant.ts';
import { createTrafficReader } from '../redis/traffic-reader.ts';
import { createTrafficStore } from '../redis/traffic-store.ts';
import { createLogger } from '../telemetry/log.ts';
import { routeQueue } from './router/queue.ts';
import { createTrafficFolds, FOLD_EVERY_MS, type TrafficFolds } from './traffic-folds.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LEASE_MS = 30_000;
/** Five minutes before the end of a day: what follows goes over minutes, quarters, hours, and the day. */
const EVENING_MS = Math.ceil(START_MS / DAY_MS) * DAY_MS - 5 * MINUTE_MS;
const PARTNERS = ['x', 'y'];

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

type Counted = Partial<Traffic> & { readonly ms: number };

type Step =
  /** Events by one of two ingress replicas; some keys nobody has activated, '' is none; `again` repeats an earlier id. */
  | { readonly do: 'publish'; readonly replica: 0 | 1; readonly keys: readonly string[]; readonly again: boolean }
  /** A router goes through the queue; it dies after so many calls, whose last answer it does not see. */
  | { readonly do: 'route'; readonly calls: number }
  /** A dispatcher works a partner's inbox once; `lost`: it dies with what it claimed, or does not see that it was ended. */
  | {
      readonly do: 'deliver';
      readonly to: number;
      readonly fails: readonly boolean[];
      readonly lost: 'no' | 'claims' | 'answer';
    }
  | { readonly do: 'wait'; readonly ms: number };

const key = fc.constantFrom('a', 'b', 'stranger', '');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('publish' as const),
    replica: fc.constantFrom(0 as const, 1 as const),
    keys: fc.array(key, { minLength: 1, maxLength: 5 }),
    again: fc.boolean(),
  }),
  fc.record({ do: fc.constant('route' as const), calls: fc.oneof(fc.constant(1_000), fc.integer({ min: 1, max: 8 })) }),
  fc.record({
    do: fc.constant('deliver' as const),
    to: fc.nat(PARTNERS.length - 1),
    fails: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
    lost: fc.constantFrom('no' as const, 'no' as const, 'claims' as const, 'answer' as const),
  }),
  fc.record({
    do: fc.constant('wait' as const),
    ms: fc.oneof(
      fc.integer({ min: 1, max: 3 * MINUTE_MS }),
      fc.constantFrom(1, MINUTE_MS - 1, MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS, 7 * 60 * MINUTE_MS),
    ),
  }),
);

/** A tenant with two partners, whose processes die at any call, and the times at which it was seen what happened. */
async function begin() {
  const t = createTenant(redis);
  t.clock.ms = EVENING_MS;
  await t.apply(
    t.routes(Object.fromEntries(PARTNERS.map(name => [name, { sinceMs: 0 }])), { retentionMs: 30 * DAY_MS }),
  );
  for (const name of PARTNERS) await t.activate(name, 'a', 0);
  await t.activate('x', 'b', 0);
  const replicas = [0, 1].map(() => createIngressOperations(redis, t.nowMs, () => {}));
  let folded = 0;
  const store = createTrafficStore({
    ...redis,
    // Every second one dies after what it did last was done.
    run: async (name, keys, args) => {
      if (name === 'prune-traffic' && folded++ % 2 === 0) throw new Error('dead');
      return redis.run(name, keys, args);
    },
  });
  const log = createLogger({ level: 'silent' });
  const folds = () => createTrafficFolds({ store, nowMs: t.nowMs, log });
  const tokens: Counted[] = [];
  const nobodys: Counted[] = [];
  const ids: string[] = [];
  let turn = 0;
  let processes: Record<'router' | 'dispatcher', TrafficFolds> = { router: folds(), dispatcher: folds() };

  const noted: InboxStore['route'] = async (...args) => {
    const reply = await t.inboxes.route(...args);
    if (reply.answer === 'OK') {
      for (const [i, item] of args[5].entries())
        if (reply.flags[i] === 'r') tokens.push({ ms: t.nowMs(), tokens: item.tokens });
    }
    return reply;
  };
  /** Lets `calls` calls through; the last one is made, and its answer never seen. */
  function mortal<T extends object>(verbs: T, life: { left: number }): T {
    const wrapped = Object.entries(verbs).map(([name, verb]) => [
      name,
      async (...args: unknown[]) => {
        if (life.left-- <= 0) throw new Error('dead');
        const answer = await (verb as (...all: unknown[]) => unknown)(...args);
        if (life.left <= 0) throw new Error('dead');
        return answer;
      },
    ]);
    return Object.fromEntries(wrapped) as T;
  }
  const cursor = async () => String((await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'cur')) ?? '0-0');

  async function route(calls: number): Promise<void> {
    const before = await cursor();
    const life = { left: calls };
    const own = t.nowMs();
    try {
      const next = await routeQueue(
        {
          queues: mortal(t.queues, life),
          inboxes: mortal({ ...t.inboxes, route: noted }, life),
          ledger: mortal(t.ledger, life),
          owner: `router ${turn++}`,
          nowMs: t.nowMs,
          signal: new AbortController().signal,
          alarm: () => {},
          lower: async () => {},
          onBatch: () => processes.router.touch(t.queue),
          batchEvents: 3,
        },
        t.queue,
        new Map(),
      );
      await processes.router.settle(t.queue, next);
    } catch {
      processes = { ...processes, router: folds() };
      t.clock.ms = Math.max(t.clock.ms, own + OWNER_LEASE_MS + 1);
    }
    const entries = await readQueue(t);
    const passed = await cursor();
    const isIn = (id: string) =>
      refOfStreamId(id) > refOfStreamId(before) && refOfStreamId(id) <= refOfStreamId(passed);
    for (const { id, groupKey } of entries) {
      if (isIn(id) && (groupKey === '' || groupKey === 'stranger')) nobodys.push({ ms: own, notRouted: 1 });
    }
    t.clock.ms = Math.max(t.clock.ms, own + OWNER_LEASE_MS + 1);
  }

  async function deliver({ to, fails, lost }: Extract<Step, { do: 'deliver' }>): Promise<void> {
    const inbox = t.inboxOf(PARTNERS[to] as string);
    const token = `t${turn++}`;
    const claimed = await t.inboxes.claim(inbox, t.nowMs(), 8, token, LEASE_MS);
    if (claimed.answer !== 'OK') throw new Error(claimed.answer);
    if (lost === 'claims') return;
    const completions = claimed.claims.map(({ lane, ref, attempts }, i): Completion => {
      const at = t.nowMs();
      const made = attempts + 1;
      if (fails[i % fails.length] !== true)
        return { lane, ref, token, outcome: 'delivered', record: `delivered ${at} ${made} 204 7` };
      if (made > 3) return { lane, ref, token, outcome: 'dead', record: `dead ${at} ${made} 500 7` };
      return { lane, ref, token, outcome: 'failed', dueMs: at + made * MINUTE_MS, attempt: `${at},500,7` };
    });
    await t.inboxes.exchange(inbox, t.nowMs(), completions);
    if (lost === 'answer') {
      await t.inboxes.exchange(inbox, t.nowMs(), completions);
      processes = { ...processes, dispatcher: folds() };
      return;
    }
    processes.dispatcher.touch({ integration: inbox.integration });
    await processes.dispatcher.settle({ integration: inbox.integration }, null);
  }

  return {
    t,
    tokens,
    nobodys,
    async step(each: Step): Promise<void> {
      if (each.do === 'wait') t.clock.ms += each.ms;
      else if (each.do === 'route') await route(each.calls);
      else if (each.do === 'deliver') await deliver(each);
      else {
        const ingress = replicas[each.replica] as (typeof replicas)[number];
        const config = await ingress.readQueue(t.tenant, QUEUE);
        if (config === null || config === 'unavailable') throw new Error('no queue');
        const events = each.keys.map(groupKey => {
          const id = each.again && ids.length > 0 ? (ids[turn % ids.length] as string) : `event ${turn}`;
          ids.push(id);
          return event(id, groupKey === '' ? undefined : groupKey, Buffer.alloc((turn++ * 7_919) % 40_000));
        });
        await ingress.ingest(t.tenant, QUEUE, config, events);
      }
    },
    /** What the hints of dead processes lead to: somebody looks at everything once more. */
    async settleAll(): Promise<void> {
      t.clock.ms += FOLD_EVERY_MS;
      const last = folds();
      await last.settle(t.queue, null);
      for (const name of PARTNERS) await last.settle({ integration: t.nameOf(name) }, null);
    },
  };
}

async function readQueue(t: Tenant): Promise<{ id: string; groupKey: string; bytes: number }[]> {
  const rows = (await redis.call('xrange', queueKeys(t.tenant, QUEUE, 'gen1').events, '-', '+')) as [
    string,
    string[],
  ][];
  return rows.map(([id, [, groupKey = '', , bytes]]) => ({ id, groupKey, bytes: Number(bytes) }));
}

/** What the records say: stored events, and what became of each reference in the inboxes. */
async function countRecords(t: Tenant): Promise<{ counted: Counted[]; references: string[] }> {
  const stored = await readQueue(t);
  const counted: Counted[] = stored.map(({ id, bytes }) => ({ ms: Number.parseInt(id, 10), eventsIn: 1, bytes }));
  const references: string[] = [];
  for (const name of PARTNERS) {
    const { integration, sub, inc } = t.inboxOf(name);
    const x = inboxKeys(integration, sub, inc);
    const log = (await redis.call('xrange', x.log, '-', '+')) as [string, string[]][];
    references.push(...log.map(([id]) => id));
    const open = await redis.readHash(x.tries);
    const buckets = new Set(log.map(([id]) => Math.floor(Number.parseInt(id, 10) / BUCKET_MS)));
    const ended = await Promise.all([...buckets].map(bucket => redis.readHash(x.records(bucket))));
    for (const text of Object.values(open)) {
      const { history } = parseEventProgress(`retrying ${text}`);
      for (const { atMs } of history) counted.push({ ms: atMs, failures: 1 });
    }
    for (const text of ended.flatMap(Object.values) as string[]) {
      for (const { atMs, result } of parseEventProgress(text).history) {
        counted.push(result === '204' ? { ms: atMs, deliveries: 1 } : { ms: atMs, failures: 1 });
      }
    }
  }
  return { counted, references };
}

function bucketsOf(counted: readonly Counted[], like: readonly Bucket[], widthMs: number): Bucket[] {
  return like.map(({ startMs }) => {
    const sum = { startMs, eventsIn: 0, deliveries: 0, failures: 0, notRouted: 0, bytes: 0, tokens: 0 };
    for (const { ms, ...counts } of counted) {
      if (ms < startMs || ms >= startMs + widthMs) continue;
      for (const [name, by] of Object.entries(counts)) sum[name as keyof Traffic] += by;
    }
    return sum;
  });
}

test('the series is what the records say, to the event, whoever died when and whatever was repeated', async () => {
  const seen = { deliveries: 0, failures: 0, notRouted: 0, tokens: 0, eventsIn: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 25, maxLength: 60 }), async steps => {
      const world = await begin();
      const { t, tokens, nobodys } = world;
      for (const each of steps) await world.step(each);
      await world.settleAll();
      const { counted, references } = await countRecords(t);
      const stored = new Map((await readQueue(t)).map(({ id, bytes }) => [id, tokensOf(bytes)]));
      // The times at which tokens were charged were seen; how many, the inboxes say.
      const charged = references.reduce((sum, id) => sum + (stored.get(id) ?? 0), 0);
      expect(tokens.reduce((sum, each) => sum + (each.tokens ?? 0), 0)).toBe(charged);
      for (const history of HISTORIES) {
        const series = await createTrafficReader(redis).readSeries(t.tenant, history, t.nowMs());
        const wanted = bucketsOf(
          [...counted, ...tokens, ...nobodys],
          series,
          RINGS[history].granularitySeconds * 1_000,
        );
        expect(series).toEqual(wanted);
        for (const name of Object.keys(seen) as (keyof typeof seen)[]) {
          seen[name] += series.reduce((sum, bucket) => sum + bucket[name], 0);
        }
      }
    }),
    { numRuns: 25, endOnFailure: true },
  );
  // The histories did something.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
}, 120_000);
