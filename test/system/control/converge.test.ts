import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NAMESPACES, SECRETS } from '../../../src/kube/resource.ts';
import { readApiMetrics } from '../../support/kubernetes/metrics.ts';
import type { Sluice } from '../../support/sluice.ts';
import { untilCalm, writesOf } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { OURS, versionLines } from '../support/listed.ts';
import { kubectl, waitForAll } from '../support/world.ts';

const SAMPLES = join(import.meta.dirname, '..', '..', '..', 'config', 'samples');
const IDLE_SECONDS = 130;

let installed: Installation;
let sluice: Sluice;

beforeAll(async () => {
  installed = await install();
  sluice = await installed.start();
  await kubectl(installed.cluster, ['apply', '-f', SAMPLES]);
  for (const kind of ['account', 'workspace', 'catalogstream', 'integration', 'activation']) {
    await waitForAll(installed.cluster, kind, 'acme');
  }
  await waitForAll(installed.cluster, 'subscription', 'globex', 'Live');
});

afterAll(() => installed?.stop());

/** Returns all objects of Sluice and its users, with the version that is changed by any write. */
const versions = () => versionLines(installed.cluster, [...OURS, NAMESPACES, SECRETS]);

/** Returns the number of requests that may have written something, by `verb resource`, as counted by the API server. */
async function mutations(): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const line of (await readApiMetrics(installed.cluster)).split('\n')) {
    const sample = /^apiserver_request_total\{(.*)\} (\S+)$/.exec(line);
    const label = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(sample?.[1] ?? '')?.[1] ?? '';
    if (sample === null || !/^(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)$/.test(label('verb'))) continue;
    // Exclude data that the API server writes itself: its identity lease, and objects created during startup.
    if (label('resource') === 'leases' || label('group').endsWith('.k8s.io')) continue;
    const name = `${label('verb')} ${label('resource')}/${label('subresource')}`;
    counts.set(name, (counts.get(name) ?? 0) + Number(sample[2]));
  }
  return counts;
}

/**
 * Returns a value that is changed by any write to Redis except for the heartbeat of its dispatcher, and the number of
 * commands so far.
 */
async function redisState(): Promise<{ writes: number; aofBytes: number; commands: number }> {
  const writes = await writesOf(installed.redis);
  const info = String(await installed.redis.command('INFO', 'everything'));
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
  return {
    writes,
    aofBytes: field('aof_current_size'),
    commands: field('total_commands_processed'),
  };
}

it('does not log errors or record failure Events while starting', async () => {
  const worried = (await sluice.logLines()).filter(({ level }) => level === 'warn' || level === 'error');
  expect(worried.map(({ msg, key, err }) => `${msg} ${key}: ${(err as Error | undefined)?.message}`)).toEqual([]);
  const reasons = await kubectl(installed.cluster, ['get', 'events', '-A', '-o', 'jsonpath={.items[*].reason}']);
  expect(reasons).not.toContain('Failed');
});

it('does not change anything if the same objects are applied again', async () => {
  await untilCalm(async () => (await redisState()).writes);
  const before = { versions: await versions(), redis: await redisState() };
  expect(before.versions.length).toBeGreaterThan(10);
  const again = await kubectl(installed.cluster, ['apply', '-f', SAMPLES]);
  expect(
    again
      .trim()
      .split('\n')
      .filter(line => !line.endsWith(' unchanged')),
  ).toEqual([]);
  await delay(3_000);
  const after = await redisState();
  expect(await versions()).toEqual(before.versions);
  expect(after.writes).toBe(before.redis.writes);
});

it(`only writes one heartbeat per second to Redis during ${IDLE_SECONDS} idle seconds`, async () => {
  const before = { versions: await versions(), mutations: await mutations(), redis: await redisState() };
  await delay(IDLE_SECONDS * 1_000);
  const after = { versions: await versions(), mutations: await mutations(), redis: await redisState() };
  const perSecond = (after.redis.commands - before.redis.commands) / IDLE_SECONDS;
  console.log(`idle: ${perSecond.toFixed(1)} commands to Redis per second for all roles in one process`);
  expect(after.versions).toEqual(before.versions);
  expect(after.mutations).toEqual(before.mutations);
  expect(after.redis.writes).toBe(before.redis.writes);
  // The size is about 100 bytes each.
  expect(after.redis.aofBytes - before.redis.aofBytes).toBeLessThan(1.1 * IDLE_SECONDS * 128);
  expect(perSecond).toBeLessThanOrEqual(100);
});

it('changes these counters when something is written', async () => {
  const before = { versions: await versions(), mutations: await mutations(), redis: await redisState() };
  await kubectl(installed.cluster, ['annotate', 'catalogstream/orders', '-n', 'acme', 'example.com/note=x']);
  await installed.redis.command('SET', 'note', 'x');
  expect(await versions()).not.toEqual(before.versions);
  expect(await mutations()).not.toEqual(before.mutations);
  expect(await redisState()).not.toMatchObject({ writes: before.redis.writes });
});

it('does not change any objects when another process leads', async () => {
  await delay(1_000);
  const before = await versions();
  const startedMs = performance.now();
  await sluice.restart();
  const led = async () => (await sluice.logLines()).filter(({ msg }) => msg === 'started leading').length;
  await eventually('it leads again', async () => (await led()) === 2);
  console.log(`killed and started again: leads after ${Math.round(performance.now() - startedMs)} ms`);
  await waitForAll(installed.cluster, 'subscription', 'globex', 'Live');
  await delay(10_000);
  expect(await led()).toBe(2);
  expect(await versions()).toEqual(before);
});
