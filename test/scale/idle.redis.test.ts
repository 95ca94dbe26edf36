import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sealEndpoint } from '../../src/core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../src/core/delivery/seal.ts';
import type { TenantRoutes } from '../../src/core/routing/routes.ts';
import { connectRedis, type RedisClient } from '../../src/redis/client.ts';
import { planRoutes } from '../../src/redis/control-plan.ts';
import { createControlStore } from '../../src/redis/control-store.ts';
import { createHintIndex } from '../../src/redis/hints.ts';
import { inboxMember } from '../../src/redis/inbox-store.ts';
import { HINT_PARTITIONS, hintKeys } from '../../src/redis/keys.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Sluice, startSluice } from '../support/sluice.ts';
import { eventually } from '../system/support/deadline.ts';
import { nameCommand } from './redis-commands.ts';

const TENANTS = 10;
const QUEUES_EACH = 100;
/** Each is subscribed to every queue of its tenant: 10,000 subscriptions. */
const INTEGRATIONS_EACH = 10;
const MEASURED_MS = 8_000;
const SOON_MS = 10_000;
const MOST_A_SECOND = 100;

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

let server: RedisServer;
let redis: RedisClient;
const roles: Sluice[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  const control = createControlStore(redis);
  const led = await control.lead('idle', 0, Date.now());
  if (!('epoch' in led)) throw new Error('this Redis belongs to another cluster');
  for (const want of times(TENANTS, routesOf)) {
    const plan = planRoutes(await control.readTenant(want.tenant, led.epoch), want, Date.now());
    await control.patch(led.epoch, plan.patches);
    await control.patch(led.epoch, plan.ready);
    await control.enlist(led.epoch, want.tenant);
    // As after an outage: everything is looked at once.
    await createHintIndex(redis, 'r').lower(
      Object.keys(want.queues).map(queue => ({ member: `${want.tenant}:${queue}`, dueMs: 0 })),
    );
    await createHintIndex(redis, 'd').lower(
      Object.entries(want.integrations).flatMap(([integration, { subscriptions }]) =>
        Object.keys(subscriptions).map(sub => ({ member: inboxMember({ integration, sub, inc: 'i1' }), dueMs: 0 })),
      ),
    );
  }
  await control.markClusterReady(led.epoch);
  for (const role of ['router', 'dispatcher', 'ingress'] as const) {
    roles.push(await startSluice({ kubeconfig: '/dev/null', redisUrl: server.url, role }));
  }
});

afterAll(async () => {
  for (const role of roles) await role.stop();
  await redis?.close();
  await server?.stop();
});

/** Hints that somebody works on, or will soon: after the first look, counts are folded once more. */
async function hintsOpen(): Promise<number> {
  let open = 0;
  for (const kind of ['r', 'd'] as const) {
    for (const p of times(HINT_PARTITIONS, i => i)) {
      const { due, tokens } = hintKeys(kind, p);
      const leased = ((await redis.call('hkeys', tokens)) as string[]).filter(member => member !== '');
      open += Number(await redis.call('zcount', due, 0, Date.now() + SOON_MS)) + leased.length;
    }
  }
  return open;
}

test(`idle with ${TENANTS * QUEUES_EACH} queues and ${TENANTS * QUEUES_EACH * INTEGRATIONS_EACH} subscriptions: at most ${MOST_A_SECOND} commands a second, none that writes control state`, async () => {
  await eventually('all was looked at once', async () => (await hintsOpen()) === 0, { withinMs: 50_000, everyMs: 200 });
  await delay(1_000);
  const client = new Redis(server.url);
  const monitor = await client.monitor();
  const counts = new Map<string, number>();
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (source === 'lua') return;
    const name = nameCommand(args) ?? 'time, ping, info';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  await delay(MEASURED_MS);
  monitor.disconnect();
  client.disconnect();
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const aSecond = (total * 1_000) / MEASURED_MS;
  console.log(`${Math.round(aSecond)} commands a second:`, Object.fromEntries(counts));
  expect(aSecond).toBeLessThanOrEqual(MOST_A_SECOND);
  // They do live: their hints are looked at.
  expect(counts.get('pick')).toBeGreaterThan(0);
  for (const name of ['patch', 'act', 'lead', 'lower', 'own', 'exchange']) expect(counts.has(name), name).toBe(false);
});
