import { afterAll, beforeAll, expect, it } from 'vitest';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import { PRODUCER, QUEUE, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';
import { activation, activationName, apply, block, integration, kubectl, pkg, tenant } from '../support/world.ts';

// All steps are performed by a controller with the shipped permissions, and by other roles without any permissions.
let installed: Installation;
let world: Running;
let publisher: Publisher;
const controllers: Sluice[] = [];
const QUOTA = { 'count/packages.sluice.dev': '100' };

async function startController(): Promise<void> {
  const kubeconfig = await kubeconfigOf(installed.cluster, 'sluice-controller');
  const env = { SLUICE_LOG_LEVEL: 'debug', SLUICE_WORKSPACE_QUOTA: JSON.stringify(QUOTA) };
  controllers.push(await installed.start({ role: 'controller', kubeconfig, env }));
}

beforeAll(async () => {
  installed = await install();
  await applyPermissions(installed.cluster);
  await startController();
  const [ingress] = await Promise.all(
    (['ingress', 'dispatcher'] as const).map(role => installed.start({ role, kubeconfig: '/nowhere' })),
  );
  world = await settle(installed, { partners: ['ada'], groupKeys: ['key'] });
  publisher = world.publisherOf(ingress as Sluice);
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

async function isDelivered(id: string, groupKey = 'key'): Promise<void> {
  await publisher.publish(makeSample(id, groupKey, id));
  await eventually(`${id} is delivered`, async () => world.receiver.delivered('ada').has(id));
}

/**
 * Returns the controller requests that were refused by the API server, from the logs. Refused Events are only found
 * there.
 */
async function refused(): Promise<string[]> {
  const lines = (await Promise.all(controllers.map(controller => controller.logLines()))).flat();
  expect(lines.length).toBeGreaterThan(0);
  return lines.map(line => JSON.stringify(line)).filter(line => /forbidden|"(?:status|code)":403\b/i.test(line));
}

it('all kinds become ready, and an event is delivered', async () => {
  await apply(installed.cluster, [
    pkg(PRODUCER, 'all', [QUEUE]),
    block(PRODUCER, 'held', { integration: 'ada', target: { kind: 'Package', name: 'all' } }),
  ]);
  await world.observer.until(['Package', 'all', PRODUCER, 'Ready', 'True/Compiled']);
  await world.observer.until(['Block', 'held', PRODUCER, 'Enforced', 'True/Enforced']);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']);
  expect(await world.observer.remove('Block', 'held', PRODUCER)).toBe(true);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await world.observer.until(['Integration', 'ada', PRODUCER, 'Ready', 'True/Active']);
  await world.observer.until(['Account', 'ada', undefined, 'Ready', 'True/LedgerReady']);
  await isDelivered('first');
  expect(await refused()).toEqual([]);
});

it('a workspace receives its namespace, and an Event reports a namespace that is already in use', async () => {
  const namespaceless = (name: string) => tenant(name).filter(({ kind }) => kind !== 'Namespace');
  await kubectl(installed.cluster, ['create', 'namespace', 'foreign']);
  await apply(installed.cluster, [...namespaceless('made'), ...namespaceless('foreign')]);
  await world.observer.until(['Workspace', 'made', undefined, 'Ready', 'True/NamespaceReady']);
  await world.observer.until(['Workspace', 'foreign', undefined, 'Ready', 'False/NamespaceNotAdopted']);
  const quotas = (namespace: string) =>
    kubectl(installed.cluster, ['get', 'resourcequota', '-n', namespace, '-o', 'jsonpath={.items[*].spec.hard}']);
  expect([await quotas('made'), await quotas('foreign')]).toEqual([JSON.stringify(QUOTA), '']);
  await world.observer.untilEvent('Workspace/foreign NamespaceNotAdopted');
  expect(await refused()).toEqual([]);
});

it('an invitation is issued, and its token is written to a Secret without a mail server', async () => {
  const invited = integration(PRODUCER, 'bob', { workspace: undefined, invitedEmail: 'bob@example.com' });
  await apply(installed.cluster, [invited]);
  await world.observer.until(['Integration', 'bob', PRODUCER, 'InvitationSent', 'True/SecretWritten']);
  expect(await refused()).toEqual([]);
});

it('the signing secret is mirrored and restored', async () => {
  const secret = ['secret', `${SUBSCRIPTION}-signing`, '-n', 'ada'];
  const read = () => kubectl(installed.cluster, ['get', ...secret, '-o', 'jsonpath={.data.secret}']);
  const before = await read();
  await kubectl(installed.cluster, ['delete', ...secret]);
  await eventually('the Secret is restored', async () => (await read()) === before);
  await kubectl(installed.cluster, ['patch', ...secret, '--type=merge', '-p', '{"data":{"secret":"eA=="}}']);
  await eventually('the value is restored', async () => (await read()) === before);
  expect(await refused()).toEqual([]);
});

it('another controller takes over', async () => {
  await startController();
  await controllers[0]?.kill('SIGKILL');
  await apply(installed.cluster, [activation(PRODUCER, 'ada', 'second')]);
  const opened = ['Activation', activationName('ada', 'second'), PRODUCER, 'Effective', 'True/Routing'] as const;
  await world.observer.until(opened, 60_000);
  await isDelivered('led by another', 'second');
  // The controller stops in order, so it releases its Lease.
  expect(await controllers[1]?.stop()).toEqual({ code: 0, signal: null });
  const holder = ['-n', 'sluice-system', '-o', 'jsonpath={.spec.holderIdentity}'];
  expect(await kubectl(installed.cluster, ['get', 'lease', 'sluice-controller', ...holder])).toBe('');
  await controllers[1]?.restart();
  expect(await refused()).toEqual([]);
});

it('removes the data of deleted objects', async () => {
  for (const [kind, name, namespace] of [
    ['Activation', activationName('ada', 'key'), PRODUCER],
    ['Subscription', SUBSCRIPTION, 'ada'],
    ['Package', 'all', PRODUCER],
    ['CatalogStream', QUEUE, PRODUCER],
    ['Integration', 'ada', PRODUCER],
    ['Workspace', 'ada', undefined],
    ['Workspace', 'made', undefined],
    ['Account', 'ada', undefined],
  ] as const) {
    expect(await world.observer.remove(kind, name, namespace)).toBe(true);
    const gone = async () => !(await world.observer.exists(kind, name, namespace));
    await eventually(`${kind} ${name} is deleted`, gone);
  }
  expect(await refused()).toEqual([]);
});
