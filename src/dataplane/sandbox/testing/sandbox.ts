import { randomUUID } from 'node:crypto';
import type { RunReport } from '../../../api/sandbox.ts';
import { sealEndpoint } from '../../../core/delivery/endpoint-config.ts';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import type { Simulation } from '../../../core/delivery/simulation.ts';
import { createSandboxStore, type SandboxLimits } from '../../../part/sandbox/sandbox-store.ts';
import type { IngressEvent } from '../../../record/ingress-store.ts';
import { event, QUEUE } from '../../../record/testing/tenant.ts';
import type { RedisClient } from '../../../redis/client.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createRunDriver, type RunDriverOptions } from '../run-driver.ts';
import { createRunReports, type PageAsked } from '../run-report.ts';
import { runMember } from '../run-view.ts';
import { createPartTenant } from './part-tenant.ts';

/** Signing and encryption keys for tests. */
export const testKeys = keyRingOf(Buffer.alloc(32, 7));
/** Header set by the owner of the signing key. */
const OWN_HEADERS = { 'x-own': 'a secret of the partner' };

/** Returns the encrypted endpoint of `sub_<name>`, which is used in tests. */
export function sealed(name: string, retryMs: readonly number[]): string {
  const url = 'http://127.0.0.1/hook';
  const endpoint = { url, timeoutMs: 15_000, retryMs, headers: OWN_HEADERS, salt: 'a-salt', secretVersion: 1 };
  return sealEndpoint(testKeys.first().sealKeys, `sub_${name}`, endpoint);
}

/** Creates a driver that is used for the runs of a single process. For tests only. */
export function driverOn(
  redis: RedisClient,
  nowMs: () => number,
  limits?: SandboxLimits,
  change: Partial<RunDriverOptions> = {},
) {
  return createRunDriver({
    redis,
    nowMs,
    log: createLogger({ level: 'silent' }),
    wallMs: nowMs,
    monotonicMs: () => performance.now(),
    keys: testKeys,
    version: '0',
    alarm: () => {},
    giveWay: async () => {},
    ...(limits === undefined ? {} : { limits }),
    ...change,
  });
}

/** Creates the sandbox of a tenant for tests. The sandbox uses a clock that only the test moves. */
export function createSandbox(redis: RedisClient, limits?: SandboxLimits) {
  const t = createPartTenant(redis);
  const store = createSandboxStore(t.client, t.nowMs, limits);
  const reports = createRunReports(t.client, t.nowMs, limits);

  /** Creates a driver that acts like a separate process. */
  const driver = () => driverOn(t.client, t.nowMs, limits);

  return {
    t,
    store,
    driver,
    report: (run: string, page: PageAsked = {}) => reports.read(t.tenant, run, page),
    publish: async (
      run: string,
      groupKey: string | undefined,
      simulation: Simulation = {},
      id: string = randomUUID(),
      body = 'body',
      more: Partial<IngressEvent> = {},
    ) => {
      const config = await t.ingress.readQueue(t.tenant, QUEUE);
      if (config === null || config === 'unavailable') throw new Error('no queue');
      return store.ingest(t.tenant, QUEUE, run, config, { ...event(id, groupKey, body), ...more, simulation });
    },
    /**
     * Drives the run until there is nothing due any more. The clock is always moved to the next due time. Returns the
     * number of steps.
     */
    finish: async (run: string, drive = driver()): Promise<number> => {
      for (let steps = 1; ; steps++) {
        const nextMs = await drive(runMember(t.tenant, run));
        if (nextMs === null) return steps;
        t.clock.ms = Math.max(t.clock.ms, nextMs);
        if (steps > 5_000) throw new Error('the run does not end');
      }
    },
  };
}

export type Sandbox = ReturnType<typeof createSandbox>;

/** Returns all keys and values in Redis that contain the tenant. Does not include its sandbox. For tests only. */
export async function dumpProduction(redis: RedisClient, t: Sandbox['t']): Promise<Map<string, unknown>> {
  const unique = t.tenant.slice('ten_'.length);
  const found = (await redis.callAll('KEYS', `*${unique}*`)).flat() as string[];
  const keys = found.filter(key => !key.startsWith('{s:')).toSorted();
  const hints = ((await redis.callAll('KEYS', '{[rd]:*')).flat() as string[]).filter(key => /:(due|st)$/.test(key));
  const dumped = new Map<string, unknown>();
  for (const key of keys) dumped.set(key, [await redis.call('pexpiretime', key), await contentOf(redis, key)]);
  for (const key of hints.toSorted()) {
    const held = key.endsWith(':due') ? await redis.call('zrange', key, 0, -1) : await redis.call('hkeys', key);
    dumped.set(
      key,
      (held as string[]).filter(member => member.includes(unique)),
    );
  }
  return dumped;
}

async function contentOf(redis: RedisClient, key: string): Promise<unknown> {
  switch (await redis.call('type', key)) {
    case 'hash':
      return redis.readHash(key);
    case 'zset':
      return redis.call('zrange', key, 0, -1, 'WITHSCORES');
    case 'stream':
      return redis.call('xrange', key, '-', '+');
    default:
      return ((await redis.call('smembers', key)) as string[]).toSorted();
  }
}

/** Returns the id of each event in a report, with a line for each integration. For tests only. */
export function sumUp(s: Sandbox, { data }: RunReport): string[][] {
  const prefix = s.t.nameOf('');
  return data.map(event => [
    event.id,
    ...event.integrations.map(({ integrationPublicId, verdict, reason, delivery }) =>
      [
        integrationPublicId.slice(prefix.length),
        verdict,
        ...(reason === null ? [] : [reason]),
        ...(delivery === null ? [] : [delivery.state, ...delivery.attempts.map(({ status }) => status)]),
        ...(delivery?.heldBy ? [`held by ${delivery.heldBy}`] : []),
      ].join(' '),
    ),
  ]);
}
