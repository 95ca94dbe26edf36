import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sealEndpoint } from '../../src/core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import type { TenantRoutes } from '../../src/core/routing/routes.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { writeRoutes } from '../support/part/routes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Sluice, startSluice } from '../support/sluice.ts';
import { eventually } from '../system/support/deadline.ts';
import { nameCommand } from './redis-commands.ts';
import { monitorRedis } from './redis-monitor.ts';

const TENANTS = 10;
const QUEUES_EACH = 100;
/** Each integration subscribes to every stream of its tenant, which results in 10,000 subscriptions. */
const INTEGRATIONS_EACH = 10;
const MEASURED_MS = 8_000;
/** The time after which a part that has changed is swept again, in milliseconds. */
const SWEPT_AGAIN_MS = 15_000;
const MOST_A_SECOND = 20;
/** How long ingress caches a key without knowing whether it was changed. */
const KEY_CACHE_MS = 5_000;

const sealKeys = deriveSealKeys(Buffer.alloc(32, 7));
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

function routesOf(n: number): TenantRoutes {
  const tenant = `ten_idle${n}`;
  const queues = times(QUEUES_EACH, i => `q${i}`);
  return {
    tenant,
    payer: `acc_${n}`,
    plan: 'Metered',
    keys: {},
    queues: Object.fromEntries(
      queues.map(queue => [
        queue,
        {
          gen: 'g1',
          state: 'open',
          retentionMs: 3_600_000,
          maxBytes: 1e9,
          source: `/events/${tenant}/${queue}`,
          eventTypes: [],
          contextHeaders: { eventType: [], groupKey: [], eventId: [], forward: [] },
        },
      ]),
    ),
    integrations: Object.fromEntries(
      times(INTEGRATIONS_EACH, i => [
        `int_${n}x${i}`,
        {
          state: 'active',
          sinceMs: 1,
          subscriptions: Object.fromEntries(
            queues.map(queue => {
              const sub = `sub_${n}x${i}x${queue}`;
              const endpoint = sealEndpoint(sealKeys, sub, {
                url: 'http://127.0.0.1:9/hook',
                timeoutMs: 15_000,
                retryMs: [],
                headers: {},
                salt: 'a-salt',
                secretVersion: 1,
              });
              const open = { route: 'open', send: 'open', sinceMs: 1, unordered: false, cap: 64 } as const;
              return [sub, { inc: 'i1', queue, gen: 'g1', endpoint, ...open }];
            }),
          ),
        },
      ]),
    ),
  };
}

const KEY = 'sk_0123456789abcdef';
/** A tenant with an id that ingress accepts, and a stream without subscriptions. */
const TRICKLE = { ...routesOf(0), tenant: `ten_${'0'.repeat(20)}`, payer: 'acc_trickle', integrations: {} };
const TRICKLE_MS = 12_000;

let server: RedisServer;
let redis: RedisClient;
const roles: Sluice[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  for (const want of times(TENANTS, routesOf)) {
    await writeRoutes(redis, want, Object.fromEntries(Object.keys(want.integrations).map(each => [each, ['key']])));
  }
  for (const role of ['dispatcher', 'ingress'] as const) {
    roles.push(await startSluice({ kubeconfig: '/dev/null', redisUrl: server.url, role }));
  }
});

afterAll(async () => {
  for (const role of roles) await role.stop();
  await redis?.close();
  await server?.stop();
});

/** Counts the commands of clients by name during the given time or, on a busy machine, a longer time. */
async function countCommands(
  forMs: number,
): Promise<{ readonly counts: ReadonlyMap<string, number>; readonly perSecond: number }> {
  const counts = new Map<string, number>();
  const close = await monitorRedis(server.url, (args, source) => {
    if (source === 'lua') return;
    const name = nameCommand(args) ?? 'time, ping, info';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  const startedMs = performance.now();
  await delay(forMs);
  close();
  const sum = [...counts.values()].reduce((total, count) => total + count, 0);
  return { counts, perSecond: (sum * 1_000) / (performance.now() - startedMs) };
}

const title = `idle with ${TENANTS * QUEUES_EACH} streams and ${TENANTS * QUEUES_EACH * INTEGRATIONS_EACH} subscriptions`;
test(`${title}: at most ${MOST_A_SECOND} commands per second, and no writes of control state`, async () => {
  // Each dispatcher reads all of its parts once when it starts.
  const looked = async () => (await countCommands(1_000)).perSecond < MOST_A_SECOND;
  await eventually('every part was read once', looked, { withinMs: 50_000, everyMs: 200 });
  await delay(SWEPT_AGAIN_MS);
  // On a busy machine, this takes longer.
  const measure = async () => {
    const measured = await countCommands(MEASURED_MS);
    console.log(`${Math.round(measured.perSecond)} commands per second:`, Object.fromEntries(measured.counts));
    return measured.perSecond <= MOST_A_SECOND && measured;
  };
  const { value } = await eventually('the dispatchers are idle', measure, { withinMs: 90_000 });
  const { counts } = value;
  // The dispatchers are alive: each one sends a heartbeat once a second.
  expect(counts.get('cluster-beat')).toBeGreaterThan(0);
  for (const name of ['patch', 'act', 'lead', 'gate', 'exchange']) expect(counts.has(name), name).toBe(false);
});

test('a stream that is used all the time does not check its ingress key all the time', async () => {
  await writeRoutes(redis, { ...TRICKLE, keys: { [hash('sha256', KEY)]: '' } }, {});
  const url = `${roles[1]?.ingressUrl}/events/${TRICKLE.tenant}/q0`;
  const send = async () => {
    await delay(500);
    const { status } = await fetch(url, { method: 'POST', headers: { 'x-api-key': KEY } });
    return status;
  };
  // Ingress has to read the state of the installation and the key once more after they were changed.
  const startedMs = performance.now();
  while (performance.now() - startedMs < 2 * KEY_CACHE_MS) expect(await send()).toBe(202);
  const counting = countCommands(TRICKLE_MS);
  let sent = 0;
  for (const untilMs = performance.now() + TRICKLE_MS - 1_000; performance.now() < untilMs; sent++) {
    expect(await send()).toBe(202);
  }
  const { counts } = await counting;
  expect(counts.get('ingest')).toBe(sent);
  // Once, if it was used while the state of the installation was read.
  expect(counts.get('key') ?? 0).toBeLessThanOrEqual(1);
});
