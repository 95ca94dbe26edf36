import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { KINDS } from '../../src/api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../src/api/well-known.ts';
import { healthOf, isSynced, readApplication, refresh, untilApplication } from '../support/argocd/application.ts';
import type { Sluice } from '../support/sluice.ts';
import { eventually } from '../system/support/deadline.ts';
import { createPublisher, makeSample } from '../system/support/publisher.ts';
import { type Receiver, startReceiver } from '../system/support/receiver.ts';
import { activation, apply, ingressKey, kubectl, type Manifest, tenant } from '../system/support/world.ts';
import { type GitOpsWorld, openGitOpsWorld, SAMPLE, SAMPLE_PATH, yamlOf } from './world.ts';

/** Objects that only become healthy on a node. In this test, Sluice runs in a process instead. */
const NEEDS_A_NODE = new Set(['Deployment', 'PodDisruptionBudget']);
const APPLICATION = 'sluice';
const FILE = join(SAMPLE_PATH, 'objects.yaml');
/** A missing reference only results in Degraded after five minutes. */
const DEGRADED_WITHIN_MS = 400_000;

let world: GitOpsWorld;
let receiver: Receiver;
let sluice: Sluice;
let sample: Manifest[];

beforeAll(async () => {
  [world, receiver] = await Promise.all([openGitOpsWorld(), startReceiver()]);
  const rendered = await kubectl(world.cluster, ['kustomize', join(SAMPLE, 'resources')]);
  sample = parseAllDocuments(rendered)
    .map(document => document.toJS() as Manifest)
    .filter(({ kind }) => !NEEDS_A_NODE.has(kind))
    .map(toReceiver);
});

afterAll(async () => {
  await world?.stop();
  await receiver?.close();
});

/** Replaces the endpoint of the partner with the receiver of this test. */
function toReceiver(object: Manifest): Manifest {
  if (object.kind !== 'Subscription') return object;
  const spec = object['spec'] as { endpoint: object };
  return { ...object, spec: { ...spec, endpoint: { ...spec.endpoint, url: receiver.urlOf('globex') } } };
}

/** Returns a hook that runs once all other objects are healthy. */
const hook = (name: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'acme', annotations: { 'argocd.argoproj.io/hook': 'PostSync' } } as Manifest['metadata'],
});

/** Returns an Activation of the sample, in its sync wave. */
function opened(groupKey: string): Manifest {
  const object = activation('acme', 'globex', groupKey);
  const annotations = { 'argocd.argoproj.io/sync-wave': '2' };
  return { ...object, metadata: { ...object.metadata, annotations } as Manifest['metadata'] };
}

const exists = async (what: string, name: string, namespace = 'acme') =>
  (await kubectl(world.cluster, ['get', what, name, '-n', namespace, '--ignore-not-found', '-o', 'name'])) !== '';

/** Commits objects and waits until the sync of this revision is waiting for an object that is not healthy. */
async function commitAndWait(objects: readonly Manifest[], forWhat: string): Promise<string> {
  const revision = await world.repository.commit({ [FILE]: yamlOf(objects) });
  await refresh(world.cluster, APPLICATION);
  await untilApplication(world.cluster, APPLICATION, ({ status }) => {
    const { phase, message = '', syncResult } = status?.operationState ?? {};
    return phase === 'Running' && syncResult?.revision === revision && message.includes(forWhat);
  });
  return revision;
}

async function publish(id: string, groupKey: string): Promise<void> {
  const { ingressUrl } = sluice;
  const publisher = createPublisher({
    ingressUrl,
    producer: 'acme',
    queue: 'orders',
    key: 'an-ingress-key-of-acme-only',
  });
  const headers = { 'x-sluice-event-type': 'order.created' };
  try {
    const post = async () => {
      const { status, body } = await publisher.post(makeSample(id, groupKey, id), { headers });
      if (status !== 202) throw new Error(JSON.stringify(body));
      return true;
    };
    await eventually(`${id} is accepted`, post, { withinMs: 30_000 });
  } finally {
    await publisher.close();
  }
}

test('in an empty cluster, each wave waits for the previous wave, and a PostSync hook waits for all waves', async () => {
  const revision = await world.repository.commit({ [FILE]: yamlOf([...sample, hook('first')]) });
  await world.follow(APPLICATION);
  await untilApplication(world.cluster, APPLICATION, ({ status }) => {
    const { phase, message = '' } = status?.operationState ?? {};
    return phase === 'Running' && /waiting for healthy state of sluice.dev\/(Account|Workspace)/.test(message);
  });
  const crds = await kubectl(world.cluster, ['get', 'crd', '-o', 'name']);
  expect(crds.match(/sluice\.dev/g)).toHaveLength(Object.keys(KINDS).length);
  expect(await exists('catalogstream', 'orders')).toBe(false);
  expect(await exists('configmap', 'first')).toBe(false);

  sluice = await world.startSluice();
  const synced = await untilApplication(
    world.cluster,
    APPLICATION,
    application => isSynced(application, revision) && application.status?.health?.status === 'Healthy',
  );
  expect(healthOf(synced)).toMatchObject({
    'Account/acme': 'Healthy',
    'Workspace/acme': 'Healthy',
    'Workspace/globex': 'Healthy',
    'CatalogStream/orders': 'Healthy',
    'Integration/globex': 'Healthy',
    'Activation/globex-customer-42': 'Healthy',
    'Subscription/acme-orders': 'Healthy',
  });
  expect(await exists('configmap', 'first')).toBe(true);
  expect(await kubectl(world.cluster, ['get', 'namespace', 'acme', '-o', 'jsonpath={.metadata.labels}'])).toContain(
    '"sluice.dev/workspace":"acme"',
  );

  await apply(world.cluster, [ingressKey('acme', 'an-ingress-key-of-acme-only')]);
  await publish('first', 'customer-42');
  await receiver.arrival('first', 'globex');
});

test('an Application with a misspelled reference is applied and Progressing at first', async () => {
  const path = 'mistaken';
  const objects = [
    ...tenant('mistaken').filter(({ kind }) => kind !== 'Namespace'),
    activation('mistaken', 'globexx', 'customer-1'),
  ];
  await world.repository.commit({ [`${path}/objects.yaml`]: yamlOf(objects) });
  await world.follow('mistaken', { path, namespace: 'mistaken' });
  await untilApplication(world.cluster, 'mistaken', application => {
    const { status } = application;
    const health = healthOf(application);
    return (
      status?.sync?.status === 'Synced' &&
      health['Workspace/mistaken'] === 'Healthy' &&
      status.health?.status === 'Progressing'
    );
  });
});

test('a PostSync hook does not run while a change is not in force', async () => {
  await world.redis.kill('SIGSTOP');
  const objects = [...sample, opened('customer-43'), hook('second')];
  let revision: string;
  try {
    revision = await commitAndWait(objects, 'waiting for healthy state of sluice.dev/Activation');
    expect(await exists('configmap', 'second')).toBe(false);
  } finally {
    await world.redis.kill('SIGCONT');
  }
  await untilApplication(world.cluster, APPLICATION, application => isSynced(application, revision));
  expect(await exists('configmap', 'second')).toBe(true);
  await publish('second', 'customer-43');
  await receiver.arrival('second', 'globex');
});

test('pruning an Activation closes its gate', async () => {
  const objects = [...sample.filter(({ kind }) => kind !== 'Activation'), opened('customer-43')];
  await world.sync(APPLICATION, FILE, objects);
  expect(await exists('activation', 'globex-customer-42')).toBe(false);
  /** The stream is ordered, so when the second event has arrived, the disposition of the first event is known. */
  async function isClosed(attempt: string): Promise<boolean> {
    await publish(`closed-${attempt}`, 'customer-42');
    await publish(`open-${attempt}`, 'customer-43');
    await receiver.arrival(`open-${attempt}`, 'globex');
    return !receiver.delivered('globex').has(`closed-${attempt}`);
  }
  // kubectl returns before the gate is closed.
  let attempts = 0;
  await eventually('the gate is closed', () => isClosed(`${++attempts}`), { withinMs: 30_000 });
  expect(await isClosed('again')).toBe(true);
});

test('a paused Workspace is Suspended and does not differ from Git', async () => {
  const annotate = (value: string) =>
    kubectl(world.cluster, ['annotate', 'workspace', 'acme', `${PAUSED_ANNOTATION}${value}`]);
  await annotate('=true');
  const paused = await untilApplication(
    world.cluster,
    APPLICATION,
    application => healthOf(application)['Workspace/acme'] === 'Suspended',
  );
  expect(paused.status?.sync?.status).toBe('Synced');
  expect(paused.status?.health?.status).toBe('Suspended');
  await annotate('-');
  await untilApplication(world.cluster, APPLICATION, ({ status }) => status?.health?.status === 'Healthy');
});

test('deleting the Application deletes its objects, and no namespace stays Terminating', async () => {
  await kubectl(world.cluster, ['delete', 'application', APPLICATION, '-n', 'argocd', '--timeout=180s']);
  const kinds = 'activations,catalogstreams,integrations,subscriptions';
  const left = await kubectl(world.cluster, ['get', kinds, '-n', 'acme', '-o', 'name']);
  expect(left).toBe('');
  expect([await exists('workspace', 'acme'), await exists('account', 'globex')]).toEqual([false, false]);
  expect(await exists('namespace', 'globex')).toBe(false);
  // The objects kept by the sample, and the objects created by Argo CD.
  expect([await exists('namespace', 'sluice-system'), await exists('namespace', 'acme')]).toEqual([true, true]);
  await kubectl(world.cluster, ['delete', 'namespace', 'acme', '--timeout=60s']);
  expect(await readApplication(world.cluster, APPLICATION)).toBeUndefined();
});

test('a misspelled reference is Degraded after five minutes and stays Synced', async () => {
  const degraded = await untilApplication(
    world.cluster,
    'mistaken',
    ({ status }) => status?.health?.status === 'Degraded',
    DEGRADED_WITHIN_MS,
  );
  const [broken] = Object.entries(healthOf(degraded)).filter(([, health]) => health === 'Degraded');
  expect(broken?.[0]).toMatch(/^Activation\//);
  expect(degraded.status?.sync?.status).toBe('Synced');
}, 600_000);
