import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { renderInstallFile } from '../../tools/generate/kustomize/install-file.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { registryRefusal } from '../support/registry/registry.ts';
import { type Backend, startClusterBackend, startSentinelBackend, startUsersBackend } from './backends.ts';
import { type Platform, startPlatform } from './platform.ts';
import { expectRefusals } from './refusals.ts';
import { deleteSamples, deliverEvent } from './samples.ts';

const refusal = nodeRefusal() ?? (await registryRefusal());
if (refusal !== undefined) process.stderr.write(`\nSKIPPED: deliveries on a real node, because ${refusal}\n\n`);

const RESTRICTED = 'pod-security.kubernetes.io/enforce=restricted';
const ROLES = ['controller', 'ingress', 'dispatcher'];
const READY = '--timeout=3m';

/** A new user must be able to see the first delivery within five minutes, starting with an empty cluster. */
const WITHIN_MS = 300_000;

describe.skipIf(refusal !== undefined)('From an empty cluster to a delivery', () => {
  let platform: Platform;

  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform?.stop());

  /** The values used by every installation. Endpoints on this machine are allowed. */
  const common = () => ({
    image: { registry: platform.registry.host },
    allowedNetworks: [`${platform.node.network.host}/32`],
    facade: { enabled: false },
  });

  async function createNamespace(name: string, ...objects: readonly object[]): Promise<void> {
    await platform.kubectl(['create', 'namespace', name]);
    await platform.kubectl(['label', 'namespace', name, RESTRICTED]);
    if (objects.length > 0) await platform.kubectl(['apply', '-n', name, '-f', '-'], objects);
  }

  async function expectNoRestarts(namespace: string, pods: number): Promise<void> {
    const path = '-o=jsonpath={range .items[*]}{.status.containerStatuses[*].restartCount}{"\\n"}{end}';
    const counts = (await platform.kubectl(['get', 'pods', '-n', namespace, path])).trim().split('\n');
    expect(counts).toEqual(Array.from({ length: pods }, () => '0'));
  }

  /** There can only be one installation at a time because its controller would process the objects of the next test. */
  async function uninstall(release: string, namespace: string): Promise<void> {
    await deleteSamples(platform);
    await platform.helm(['uninstall', release, '-n', namespace, '--ignore-not-found', '--wait', '--timeout=2m']);
    await platform.kubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--timeout=90s']);
  }

  test('with the chart and the images of a registry', { timeout: WITHIN_MS }, async () => {
    onTestFinished(() => uninstall('sluice', 'sluice-system'));
    const beganMs = performance.now();
    const { chart, helm, kubectl, registry } = platform;
    await helm(
      ['install', 'sluice', ...chart, '-n=sluice-system', '--create-namespace', '--set=redis.embedded.enabled=true'],
      common(),
    );
    await kubectl(['rollout', 'status', 'deployment', '-n=sluice-system', READY]);
    await deliverEvent(platform, { name: 'sluice-ingress', namespace: 'sluice-system' });
    console.log(`delivered ${((performance.now() - beganMs) / 1_000).toFixed(1)} s after helm install`);
    expect(registry.pulls('sluice')).toBeGreaterThan(0);
    expect(registry.pulls('sluice-redis')).toBeGreaterThan(0);
  });

  test('with dist/install-evaluation.yaml', { timeout: WITHIN_MS }, async () => {
    const beganMs = performance.now();
    const { kubectl, node, registry } = platform;
    const file = renderInstallFile(registry.host, { evaluation: true });
    onTestFinished(async () => {
      await deleteSamples(platform);
      const deleted = await node.kubectl(['delete', '--timeout=90s', '-f', '-'], { stdin: file });
      expect([deleted.code, deleted.stderr]).toEqual([0, '']);
    });
    const apply = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
    const { code, stderr } = await node.kubectl(apply, { stdin: file });
    expect([code, stderr]).toEqual([0, '']);
    const data = { 'root.key': randomBytes(32).toString('base64') };
    const metadata = { name: 'sluice-root-key', namespace: 'sluice-system' };
    await kubectl(['create', '-f', '-'], [{ apiVersion: 'v1', kind: 'Secret', metadata, data }]);
    const networks = JSON.stringify({ data: { SLUICE_ALLOWED_NETWORKS: `${node.network.host}/32` } });
    await kubectl(['patch', 'configmap', 'sluice-config', '-n=sluice-system', '--type=merge', `-p=${networks}`]);
    await kubectl(['rollout', 'restart', 'deployment', '-n=sluice-system']);
    await kubectl(['rollout', 'status', 'deployment', '-n=sluice-system', READY]);
    await deliverEvent(platform, { name: 'sluice-ingress', namespace: 'sluice-system' });
    console.log(`delivered ${((performance.now() - beganMs) / 1_000).toFixed(1)} s after kubectl apply`);
  });

  test('with another release name and namespace, where all policies are enforced', {
    timeout: WITHIN_MS,
  }, async () => {
    const { chart, helm } = platform;
    onTestFinished(() => uninstall('blue', 'events'));
    await createNamespace('events');
    await helm(['install', 'blue', ...chart, '-n=events', '--wait', READY], {
      ...common(),
      redis: { embedded: { enabled: true } },
      secrets: { access: 'namespaced' },
      // The accounts and policies of the facade. There is no identity provider, so the facade has no pods.
      facade: { enabled: true, replicas: 0 },
      oidc: { issuers: ['https://login.example.com'], audience: 'sluice' },
      ...Object.fromEntries(ROLES.map(role => [role, { replicas: 1 }])),
    });
    await expectNoRestarts('events', ROLES.length + 1);
    await deliverEvent(platform, { name: 'blue-sluice-ingress', namespace: 'events' });
    await expectRefusals(platform, { prefix: 'blue-sluice', namespace: 'events' });
  });

  test('with all roles in one pod', { timeout: WITHIN_MS }, async () => {
    const { chart, helm } = platform;
    onTestFinished(() => uninstall('sluice', 'single'));
    await createNamespace('single');
    await helm(['install', 'sluice', ...chart, '-n=single', '--wait', '--take-ownership', READY], {
      ...common(),
      mode: 'all',
      redis: { embedded: { enabled: true } },
    });
    await deliverEvent(platform, { name: 'sluice-ingress', namespace: 'single' });
  });

  describe.each<[name: string, namespace: string, start: (host: string) => Promise<Backend>]>([
    ['Sentinel, TLS and passwords in files', 'sentinel', startSentinelBackend],
    ['a Redis Cluster', 'cluster', startClusterBackend],
    ['a Redis user for each role', 'users', startUsersBackend],
  ])('with %s', (_, namespace, start) => {
    let backend: Backend;
    beforeAll(async () => {
      backend = await start(platform.node.network.host);
    });
    afterAll(() => backend?.stop());

    test('delivers', { timeout: WITHIN_MS }, async () => {
      const { chart, helm } = platform;
      onTestFinished(() => uninstall('sluice', namespace));
      await createNamespace(namespace, ...backend.secrets);
      await helm(['install', 'sluice', ...chart, '-n', namespace, '--wait', '--take-ownership', READY], {
        ...common(),
        redis: backend.values,
        ...Object.fromEntries(ROLES.map(role => [role, { replicas: 1 }])),
      });
      await expectNoRestarts(namespace, ROLES.length);
      await deliverEvent(platform, { name: 'sluice-ingress', namespace });
      await backend.verify?.();
    });
  });
});
