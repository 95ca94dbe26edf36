import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { simulatedStatus } from '../../core/delivery/simulation.ts';
import { toldReason } from '../../core/routing/told-reasons.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { readProgress } from '../../redis/inbox-reader.ts';
import { inboxMember } from '../../redis/inbox-store.ts';
import { bucketOf, inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { createSandboxClient } from '../../redis/sandbox-client.ts';
import { RUN_KEPT_MS } from '../../redis/sandbox-store.ts';
import { event, QUEUE, START_MS } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createEventCache } from '../dispatcher/event-cache.ts';
import { judgeStatus } from '../dispatcher/outcome.ts';
import { createWorker } from '../dispatcher/worker.ts';
import { routeQueue } from '../router/queue.ts';
import { createSandbox, dumpProduction, type Sandbox, sealed, testKeys } from './testing/sandbox.ts';

const RUN = 'twin';
const NAMES = ['x', 'y', 'paused', 'pending', 'pulls', 'unordered'];

/** One event: its group key, and how its simulated endpoints answer. */
const EVENTS = [
  ['a', {}],
  ['a', { failCode: 503, failCount: 2 }],
  ['b', {}],
  ['a', {}],
  [undefined, {}],
  ['c', { failCode: 404 }],
  ['closed', {}],
  ['b', { failCount: 1 }],
  ['c', {}],
  ['a', { failCode: 301, failCount: 20 }],
] as const;

/** The result: the disposition of each event per integration, and the order of deliveries. */
async function outcomeOf(redis: RedisClient, s: Sandbox, ids: ReadonlyMap<string, string>) {
  const { t } = s;
  const { why } = queueKeys(t.tenant, QUEUE);
  const outcome: Record<string, unknown> = {};
  for (const name of NAMES) {
    const inbox = t.inboxOf(name);
    const ended: [string, number][] = [];
    for (const [ref, id] of ids) {
      const told = await redis.call('hget', why(bucketOf(START_MS)), ref);
      const noted = toldReason(`${told ?? ''}`, inbox.integration);
      const found = await readProgress(redis, inbox, ref);
      const progress = found.answer === 'OK' ? found.progress : undefined;
      const statuses = progress?.history.map(({ result }) => result);
      outcome[`${name} ${id}`] = { noted, state: progress?.state, attempts: progress?.attempts, statuses };
      if (progress?.endedMs !== undefined) ended.push([id, progress.endedMs]);
    }
    // Those of a lane end one after the other; between lanes, time says nothing.
    for (const groupKey of ['a', 'b', 'c']) {
      const lane = ended.filter(([id]) => EVENTS[Number(id.slice(1))]?.[0] === groupKey);
      outcome[`${name} order of ${groupKey}`] = lane.toSorted((a, b) => a[1] - b[1]).map(([id]) => id);
    }
    const behind = await redis.call('hget', queueKeys(t.tenant, QUEUE).behind, inboxMember(inbox));
    outcome[`${name} behind`] = behind !== null;
    const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    outcome[`${name} open`] = await redis.call('zcard', x.pending);
  }
  return outcome;
}

async function prepare(redis: RedisClient): Promise<Sandbox> {
  const s = createSandbox(redis);
  const { t } = s;
  const endpoint = (name: string) => sealed(name, [5_000, 300_000, 3_600_000]);
  await t.apply(
    t.routes({
      x: { sub: { endpoint: endpoint('x') } },
      y: { sub: { endpoint: endpoint('y') } },
      paused: { sub: { endpoint: endpoint('paused'), route: 'paused', send: 'held' } },
      pending: { state: 'pending', sub: { endpoint: endpoint('pending') } },
      pulls: { sub: { endpoint: '' } },
      unordered: { sub: { endpoint: endpoint('unordered'), unordered: true } },
    }),
  );
  for (const name of NAMES) for (const groupKey of ['a', 'b']) await t.activate(name, groupKey);
  await t.activate('x', 'c');
  await t.activate('y', 'closed', START_MS + 60_000);
  await t.deactivate('y', 'closed');
  return s;
}

/** The same by production: its router, and its dispatcher's workers, which call an endpoint that answers as asked. */
async function runProduction(s: Sandbox): Promise<Map<string, string>> {
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
      attempt: async ({ headers }) => {
        const id = headers[headers.indexOf('webhook-id') + 1] as string;
        const number = (made.get(`${name} ${id}`) ?? 0) + 1;
        made.set(`${name} ${id}`, number);
        const status = simulatedStatus(EVENTS[Number(id.slice(1))]?.[1] ?? {}, number);
        return { ...judgeStatus(status), status, latencyMs: 0, responseBody: Buffer.alloc(0), truncated: false };
      },
    },
    inboxMember(t.inboxOf(name)),
  );
  return worker.run();
}

test('the sandbox records what production records, in the same order, but for the time', async () => {
  const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  const production = await prepare(redis);
  const produced = await outcomeOf(redis, production, await runProduction(production));

  const sandbox = await prepare(redis);
  const before = await dumpProduction(redis, sandbox.t);
  const ids = new Map<string, string>();
  for (const [i, [groupKey, simulation]] of EVENTS.entries()) {
    const outcome = await sandbox.publish(RUN, groupKey, simulation, `e${i}`);
    if (outcome.answer === 'OK') ids.set(outcome.ref, `e${i}`);
  }
  await sandbox.finish(RUN);
  const ofRun = createSandboxClient(redis, sandbox.t.tenant, RUN, START_MS + RUN_KEPT_MS);
  expect(await outcomeOf(ofRun, sandbox, ids)).toEqual(produced);
  expect(await dumpProduction(redis, sandbox.t)).toEqual(before);

  // What was compared is not all of one sort.
  const states = Object.values(produced).flatMap(each => (each as { state?: string }).state ?? []);
  expect(Object.groupBy(states, state => state)).toMatchObject({ delivered: {}, dead: {}, pending: {} });
  const counters = async (client: RedisClient, { t }: Sandbox) => {
    const fields = await client.readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
    return Object.fromEntries(Object.entries(fields).filter(([field]) => field.startsWith('n:')));
  };
  expect(await counters(ofRun, sandbox)).toEqual(await counters(redis, production));
  const ledger = async (client: RedisClient, { t }: Sandbox) =>
    (await client.readHash(integrationKeys(t.nameOf('x')).ledger))[t.account];
  expect(await ledger(ofRun, sandbox)).toBe(await ledger(redis, production));
  expect(await ledger(redis, sandbox)).toBeUndefined();
  await redis.close();
});
