import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tenantId } from '../../src/core/ids/ids.ts';
import { buildImage } from '../../tools/image/build.ts';
import { CHART, openHelm, outputOf, ROOT } from '../chart/support/helm.ts';
import { buildOverlays } from '../chart/support/kustomize.ts';
import { type ChildProcess, startChild } from '../support/child-process.ts';
import { type Node, startNode } from '../support/node-cluster/node.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { eventually } from '../system/support/deadline.ts';
import { shopObjects } from './shop.ts';
import { signalProcesses } from './signal.ts';

const KEY = 'an-ingress-key-of-the-shop';
const REDIS_PORT = 6379;
const HOOKS_PORT = 8080;
const NAMESPACE = 'sluice-system';
const ROLES = ['controller', 'ingress', 'dispatcher'];
/** The maximum duration of each step, in seconds. */
const WITHIN_SECONDS = 180;
const WAIT = `--timeout=${WITHIN_SECONDS}s`;

/** Installs Sluice and removes it in each order. Every removal must complete. */
describe.skipIf(nodeRefusal() !== undefined)('removing', { timeout: 400_000 }, () => {
  let node: Node;
  let folder: TemporaryFolder;
  let redis: ChildProcess;
  let hooks: Server;
  let installations = 0;

  async function kubectl(args: readonly string[], objects?: readonly object[]): Promise<string> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    return outputOf(await node.kubectl(args, objects === undefined ? {} : { stdin: JSON.stringify(list) }));
  }

  /** Runs helm in the namespace of Sluice. */
  async function tryHelm(args: readonly string[], values?: object) {
    const run = await openHelm();
    const options = { kubeconfig: node.kubeconfig, ...(values === undefined ? {} : { values: values as {} }) };
    return run([...args, '--namespace', NAMESPACE], options);
  }
  const helm = async (args: readonly string[], values?: object) => outputOf(await tryHelm(args, values));

  const uninstallRelease = () => helm(['uninstall', 'sluice', '--wait', '--timeout=3m']);
  const deleteKinds = () => kubectl(['delete', '-f', join(ROOT, 'crds'), '--ignore-not-found', WAIT]);
  const deleteTenants = () => kubectl(['delete', 'namespace', 'shop', 'ada', '--ignore-not-found', WAIT]);
  const deleteNamespace = () => kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found', WAIT]);

  function startRedis(): ChildProcess {
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];
    const address = ['--bind', node.network.host, '--port', `${REDIS_PORT}`, '--protected-mode', 'no'];
    const files = ['--dir', folder.path, '--appenddirname', `append-${++installations}`, '--save', ''];
    return startChild({
      command: 'redis-server',
      args: [...address, ...settings, ...files],
      log: join(folder.path, `redis-${installations}.log`),
    });
  }

  const values = () => ({
    image: { registry: 'localhost', pullPolicy: 'Never' },
    redis: { url: `redis://${node.network.host}:${REDIS_PORT}` },
    facade: { enabled: false },
    allowedNetworks: [`${node.network.host}/32`],
    ...Object.fromEntries(ROLES.map(role => [role, { replicas: 1 }])),
  });

  /** Publishes an event that is rejected by its endpoint for the duration of the test. */
  async function publishFailing(): Promise<void> {
    const service = ['get', 'service', 'sluice-ingress', '-n', NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}'];
    const url = `http://${await kubectl(service)}/events/${tenantId('shop')}/orders`;
    const headers = { authorization: `Bearer ${KEY}`, 'x-sluice-group-key': 'customer-42' };
    const publish = async () => (await fetch(url, { method: 'POST', headers, body: '{}' })).status === 202;
    await eventually('ingress accepts the event', publish);
  }

  beforeAll(async () => {
    folder = await temporaryFolder('removal');
    const image = join(folder.path, 'image');
    [node] = await Promise.all([startNode(), buildImage(ROOT, image)]);
    await node.importImage(image, 'localhost/sluice');
    hooks = createServer((_request, response) => response.writeHead(500).end());
    await once(hooks.listen(HOOKS_PORT, node.network.host), 'listening');
  });

  afterAll(async () => {
    hooks?.close();
    await node?.stop();
    await redis?.stop();
    await folder?.remove();
  });

  beforeEach(async () => {
    redis = startRedis();
    await helm(['install', 'sluice', CHART, '--create-namespace', '--wait', '--timeout=4m'], values());
    const url = `http://${node.network.host}:${HOOKS_PORT}/hooks`;
    await kubectl(['apply', '--server-side', '-f', '-'], shopObjects(KEY, { url, retrySchedule: ['1h'] }));
    await kubectl(['wait', WAIT, '--for=condition=Live', 'subscription.sluice.dev/shop-orders', '-n', 'ada']);
    await kubectl(['wait', WAIT, '--for=condition=Effective', 'activations.sluice.dev', '--all', '-n', 'shop']);
  }, 600_000);

  afterEach(async () => {
    await redis.stop();
    // If a release's namespace was deleted first, some of its objects remain.
    const kinds = 'clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings';
    await kubectl(['delete', kinds, '-l', 'app.kubernetes.io/name=sluice']);
  });

  /** Runs all removals in this order without any delay, and expects that no objects remain. */
  async function removeBy(...steps: readonly (() => Promise<unknown>)[]): Promise<void> {
    const beganMs = performance.now();
    for (const step of steps) await step();
    const seconds = (performance.now() - beganMs) / 1_000;
    console.log(`${expect.getState().currentTestName}: removed within ${seconds.toFixed(0)} s`);
    expect(await kubectl(['get', 'namespaces', '-o', 'name'])).not.toMatch(/shop|ada|sluice/);
    expect(await kubectl(['get', 'crds', '-o', 'name'])).toBe('');
  }

  test('completes if the release is removed first', async () => {
    await removeBy(uninstallRelease, deleteTenants, deleteKinds, deleteNamespace);
  });

  test('completes if Redis is removed first', async () => {
    await removeBy(() => redis.stop(), uninstallRelease, deleteKinds, deleteTenants, deleteNamespace);
  });

  test('completes if the namespaces of the tenants are removed first', async () => {
    // The controller recreates a Workspace's namespace.
    await removeBy(deleteTenants, uninstallRelease, deleteKinds, deleteTenants, deleteNamespace);
  });

  test('completes if the kinds are removed first while events are undelivered', async () => {
    await publishFailing();
    await removeBy(deleteKinds, deleteTenants, uninstallRelease, deleteNamespace);
  });

  test('completes if the namespace of Sluice is removed first, using the command that removes the finalizers', async () => {
    await removeBy(
      deleteNamespace,
      // The first deletions wait for a controller that no longer exists.
      () => kubectl(['delete', 'namespace', 'shop', 'ada', '--wait=false']),
      () => kubectl(['delete', '-f', join(ROOT, 'crds'), '--wait=false']),
      () => kubectl(['create', 'namespace', NAMESPACE]),
      runCommand,
      deleteTenants,
      deleteKinds,
      deleteNamespace,
    );
  });

  test('refuses to remove the release while a stream is draining, unless --ignore-undelivered is set', async () => {
    await publishFailing();
    await kubectl(['delete', 'catalogstream.sluice.dev', 'orders', '-n', 'shop', '--wait=false']);
    await kubectl([
      'wait',
      WAIT,
      '--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=Draining',
      'catalogstream.sluice.dev/orders',
      '-n',
      'shop',
    ]);
    const refused = await tryHelm(['uninstall', 'sluice', '--wait', '--timeout=3m']);
    expect(refused.code).not.toBe(0);
    expect(refused.stdout + refused.stderr).toContain('Streams with undelivered events: 1: shop/orders');
    expect(
      await kubectl(['get', 'pods', '-n', NAMESPACE, '--field-selector=status.phase=Running', '-o', 'name']),
    ).toMatch(/controller.*\n.*dispatcher.*\n.*ingress/);
    const command = ['/usr/bin/node', '/app/src/sluice.js', 'uninstall', '--ignore-undelivered'];
    await kubectl(['exec', '-n', NAMESPACE, 'deployment/sluice-controller', '--', ...command]);
    await removeBy(uninstallRelease, deleteTenants, deleteKinds, deleteNamespace);
  });

  test('completes if the release is removed while the leader is stopped', async () => {
    await signalProcesses(node, ['src/sluice.js', 'controller'], 'SIGSTOP');
    await removeBy(uninstallRelease, deleteKinds, deleteTenants, deleteNamespace);
  });

  /** Runs the commands in docs/install.md for an installation without Helm, using the image of this test. */
  async function runCommand(): Promise<void> {
    const images = [{ name: 'sluice', newName: 'localhost/sluice' }];
    await kubectl(['apply', '--server-side', '-f', '-'], await buildOverlays({ resources: ['uninstall'], images }));
    await kubectl(['wait', WAIT, '--for=condition=Complete', 'job/sluice-uninstall', '-n', NAMESPACE]);
  }
});
