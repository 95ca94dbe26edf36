import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createManualClock } from '../../../../test/support/manual-clock.ts';
import { QUOTA_NAME } from '../../../api/well-known.ts';
import { connect, type KubeClient } from '../../../kube/client.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { NAMESPACES, RESOURCE_QUOTAS } from '../../../kube/resource.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { createControllerMetrics } from '../../engine/controller-metrics.ts';
import { createQuotaRepair, createWorkspaceQuotas, type Quota } from './quota.ts';

const PREFIX = `quota-${process.pid}`;
const SOON = { timeout: 10_000 };
const log = createLogger({ level: 'silent' });
let client: KubeClient;
let count = 0;

beforeAll(() => {
  client = connect({ kubeconfig: inject('kubeconfig') });
});

afterAll(async () => {
  for (let n = 1; n <= count; n++) await client.remove(NAMESPACES, { name: `${PREFIX}-${n}` });
  await client.close();
});

async function makeNamespace(): Promise<string> {
  const name = `${PREFIX}-${++count}`;
  await client.create(NAMESPACES, { name }, {});
  return name;
}

type QuotaObject = AnyObject & { readonly spec: { readonly hard: Quota } };

const read = async (namespace: string) => client.get<QuotaObject>(RESOURCE_QUOTAS, { namespace, name: QUOTA_NAME });
/** Writes the quota like a new leader. */
const write = (namespace: string, quota: Quota | undefined) =>
  createWorkspaceQuotas({ client, quota, log }).ensure(namespace);

test('writes the limits, and removes those that are no longer configured', async () => {
  const namespace = await makeNamespace();
  await write(namespace, { 'count/activations.sluice.dev': '10', 'count/packages.sluice.dev': '5' });
  await write(namespace, { 'count/activations.sluice.dev': '20' });
  expect((await read(namespace))?.spec.hard).toEqual({ 'count/activations.sluice.dev': '20' });
});

test('removes limits that an earlier process has written, and reads all quotas once', async () => {
  const [cleared, foreign, none] = [await makeNamespace(), await makeNamespace(), await makeNamespace()];
  await write(cleared, { 'count/packages.sluice.dev': '5' });
  const blocks = { 'count/blocks.sluice.dev': '7' };
  await client.mergePatch(RESOURCE_QUOTAS, { namespace: cleared, name: QUOTA_NAME }, { spec: { hard: blocks } });
  await client.create(RESOURCE_QUOTAS, { namespace: foreign, name: QUOTA_NAME }, { spec: { hard: blocks } });
  let lists = 0;
  let isAway = true;
  const list: KubeClient['list'] = (...args) => {
    lists += 1;
    return isAway ? Promise.reject(new Error('unavailable')) : client.list(...args);
  };
  const applied: (string | undefined)[] = [];
  const apply: KubeClient['apply'] = (resource, name, ...rest) => {
    applied.push(name.namespace);
    return client.apply(resource, name, ...rest);
  };
  const quotas = createWorkspaceQuotas({ client: { list, apply }, quota: undefined, log });
  await quotas.ensure(cleared);
  expect(Object.keys((await read(cleared))?.spec.hard ?? {})).toHaveLength(2);
  isAway = false;
  await quotas.repair(() => true, new AbortController().signal);
  for (const namespace of [foreign, none, cleared]) await quotas.ensure(namespace);
  expect((await read(cleared))?.spec.hard).toEqual(blocks);
  expect((await read(foreign))?.spec.hard).toEqual(blocks);
  expect(await read(none)).toBeUndefined();
  expect([applied, lists]).toEqual([[cleared], 2]);
});

test('keeps changes and additions of an administrator', async () => {
  const namespace = await makeNamespace();
  await write(namespace, { 'count/activations.sluice.dev': '10', 'count/packages.sluice.dev': '5' });
  const hard = { 'count/activations.sluice.dev': '99', 'count/blocks.sluice.dev': '7' };
  await client.mergePatch(RESOURCE_QUOTAS, { namespace, name: QUOTA_NAME }, { spec: { hard } });
  await write(namespace, { 'count/activations.sluice.dev': '20', 'count/packages.sluice.dev': '6' });
  expect((await read(namespace))?.spec.hard).toEqual({ ...hard, 'count/packages.sluice.dev': '6' });
});

test('writes once until the namespace is deleted', async () => {
  const namespace = await makeNamespace();
  const quotas = createWorkspaceQuotas({ client, quota: { 'count/packages.sluice.dev': '5' }, log });
  await quotas.ensure(namespace);
  await client.remove(RESOURCE_QUOTAS, { namespace, name: QUOTA_NAME });
  await quotas.ensure(namespace);
  expect(await read(namespace)).toBeUndefined();
  quotas.forget(namespace);
  await quotas.ensure(namespace);
  expect(await read(namespace)).toBeDefined();
});

test('restores a deleted quota or limit within two minutes, without other writes', async () => {
  const quota = { 'count/activations.sluice.dev': '10', 'count/packages.sluice.dev': '5' };
  const [deleted, reduced, changed, intact, lost] = [
    await makeNamespace(),
    await makeNamespace(),
    await makeNamespace(),
    await makeNamespace(),
    await makeNamespace(),
  ] as const;
  const written: (string | undefined)[] = [];
  const apply: KubeClient['apply'] = (resource, name, ...rest) => {
    written.push(name.namespace);
    return client.apply(resource, name, ...rest);
  };
  const quotas = createWorkspaceQuotas({ client: { list: client.list, apply }, quota, log });
  for (const namespace of [deleted, reduced, changed, intact, lost]) await quotas.ensure(namespace);
  const change = (namespace: string, limit: string | null) => {
    const hard = { 'count/packages.sluice.dev': limit };
    return client.mergePatch(RESOURCE_QUOTAS, { namespace, name: QUOTA_NAME }, { spec: { hard } });
  };
  await Promise.all([change(reduced, null), change(changed, '99')]);
  for (const namespace of [deleted, lost]) await client.remove(RESOURCE_QUOTAS, { namespace, name: QUOTA_NAME });
  written.splice(0);

  const clock = createManualClock();
  const metrics = createControllerMetrics(createRegistry())('quota');
  const stop = new AbortController();
  const repair = createQuotaRepair({ name: 'quota', clock, log, metrics }, quotas, namespace => namespace !== lost);
  const running = repair.run(stop.signal, stop.signal);
  const hard = async (namespace: string) => (await read(namespace))?.spec.hard;
  await expect.poll(() => hard(deleted), SOON).toEqual(quota);
  await expect.poll(() => hard(reduced), SOON).toEqual(quota);
  expect(await hard(changed)).toEqual({ ...quota, 'count/packages.sluice.dev': '99' });
  expect(written).toEqual([deleted, reduced]);

  await client.remove(RESOURCE_QUOTAS, { namespace: intact, name: QUOTA_NAME });
  await expect.poll(clock.pendingTimers, SOON).toBe(1);
  await clock.advance(120_000);
  await expect.poll(() => hard(intact), SOON).toEqual(quota);
  stop.abort();
  await running;
  expect(written).toEqual([deleted, reduced, intact]);
});

test('limits of a workspace are written, changed, and removed again, and the default takes precedence', async () => {
  const namespace = await makeNamespace();
  const written: unknown[] = [];
  const apply: KubeClient['apply'] = (resource, name, ...rest) => {
    written.push(rest[0]);
    return client.apply(resource, name, ...rest);
  };
  const quotas = createWorkspaceQuotas({ client: { list: client.list, apply }, quota: undefined, log });
  const hard = async () => (await read(namespace))?.spec.hard;
  await quotas.ensure(namespace, {});
  expect(written).toEqual([]);
  await quotas.ensure(namespace, { 'count/packages.sluice.dev': '5', 'count/catalogstreams.sluice.dev': '1' });
  await quotas.ensure(namespace, { 'count/packages.sluice.dev': '5', 'count/catalogstreams.sluice.dev': '1' });
  expect([written.length, await hard()]).toEqual([
    1,
    { 'count/packages.sluice.dev': '5', 'count/catalogstreams.sluice.dev': '1' },
  ]);
  await client.mergePatch(
    RESOURCE_QUOTAS,
    { namespace, name: QUOTA_NAME },
    {
      spec: { hard: { 'count/packages.sluice.dev': '99', 'count/blocks.sluice.dev': '7' } },
    },
  );
  const customized = { 'count/packages.sluice.dev': '99', 'count/blocks.sluice.dev': '7' };
  await quotas.ensure(namespace, { 'count/packages.sluice.dev': '6', 'count/catalogstreams.sluice.dev': '2' });
  expect(await hard()).toEqual({ ...customized, 'count/catalogstreams.sluice.dev': '2' });
  await quotas.ensure(namespace, {});
  expect(await hard()).toEqual(customized);
  const calls = written.length;
  await quotas.repair(() => true, new AbortController().signal);
  await quotas.ensure(namespace, {});
  expect(written).toHaveLength(calls);

  const other = await makeNamespace();
  const quota = { 'count/packages.sluice.dev': '3' };
  const both = createWorkspaceQuotas({ client, quota, log });
  await both.ensure(other, { 'count/packages.sluice.dev': '5', 'count/catalogstreams.sluice.dev': '1' });
  expect((await read(other))?.spec.hard).toEqual({ ...quota, 'count/catalogstreams.sluice.dev': '1' });
});

test('does not write a quota without a default, and tolerates a refusal', async () => {
  const namespace = await makeNamespace();
  await write(namespace, undefined);
  await write(namespace, {});
  await write(namespace, { 'count/packages.sluice.dev': 'many' });
  expect(await read(namespace)).toBeUndefined();
});
