import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { registryRefusal } from '../support/registry/registry.ts';
import { type Platform, startPlatform } from './platform.ts';
import { copySamples, deleteSamples, deliverBetween, deliverEvent } from './samples.ts';

const refusal = nodeRefusal() ?? (await registryRefusal());
if (refusal !== undefined) process.stderr.write(`\nSKIPPED: two installations on a real node, because ${refusal}\n\n`);

const ROLES = ['controller', 'ingress', 'dispatcher'];
const WITHIN = { timeout: 300_000 };
const BLUE = { producer: 'initech', partner: 'umbrella' };

/**
 * Two releases in the same cluster: each of them delivers the events of its own workspaces and does not write anything
 * that belongs to the other.
 */
describe.skipIf(refusal !== undefined)('Two installations on a node', () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform?.stop());

  function install(release: string, namespace: string, values: object): Promise<string> {
    const { chart, helm, node, registry } = platform;
    const where = ['-n', namespace, '--create-namespace', '--wait', '--timeout=3m'];
    return helm(['install', release, ...chart, ...where], {
      image: { registry: registry.host },
      allowedNetworks: [`${node.network.host}/32`],
      facade: { enabled: false },
      redis: { embedded: { enabled: true } },
      ...Object.fromEntries(ROLES.map(role => [role, { replicas: 1 }])),
      ...values,
    });
  }

  /** Returns the resource version of each custom resource and Secret of the first installation. */
  async function versions(): Promise<string[]> {
    const path =
      '{range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}';
    const output = await platform.kubectl(['get', 'waas,waas-admin,secrets,namespaces', '-A', `-o=jsonpath=${path}`]);
    return output.split('\n').filter(line => /acme|globex/.test(line));
  }

  test('the second installation delivers between its own workspaces', WITHIN, async () => {
    await install('sluice', 'sluice-system', {});
    await deliverEvent(platform, { name: 'sluice-ingress', namespace: 'sluice-system' });
    const before = await versions();
    expect(before.length).toBeGreaterThan(9);
    await install('blue', 'blue-system', { instance: 'blue', crds: { enabled: false } });
    await copySamples(platform, 'blue', BLUE);
    await deliverBetween(platform, { name: 'blue-sluice-ingress', namespace: 'blue-system' }, BLUE);
    expect(await versions()).toEqual(before);
  });

  test('the ingress of an installation does not know the streams of the other installation', WITHIN, async () => {
    const read = (...args: string[]) => platform.kubectl(['get', ...args]);
    const path = '-o=jsonpath={.status.ingressPath}';
    const stream = await read('catalogstream.sluice.dev/orders', '-n', BLUE.producer, path);
    const address = await read('service/sluice-ingress', '-n=sluice-system', '-o=jsonpath={.spec.clusterIP}');
    const headers = { authorization: 'Bearer an-ingress-key-of-acme', 'content-type': 'application/json' };
    const { status } = await fetch(`http://${address}${stream}`, { method: 'POST', headers, body: '{}' });
    expect(status).toBe(401);
  });

  test('the first installation continues when the second installation is removed', WITHIN, async () => {
    const before = await versions();
    const { helm, kubectl } = platform;
    await helm(['uninstall', 'blue', '-n=blue-system', '--wait', '--timeout=2m']);
    await kubectl(['delete', 'namespace', 'blue-system', BLUE.producer, BLUE.partner, '--timeout=90s']);
    expect(await versions()).toEqual(before);
    await deliverEvent(platform, { name: 'sluice-ingress', namespace: 'sluice-system' });
    await deleteSamples(platform, [BLUE]);
    await helm(['uninstall', 'sluice', '-n=sluice-system', '--wait', '--timeout=2m']);
    await kubectl(['delete', 'namespace', 'sluice-system', '--timeout=90s']);
  });
});
