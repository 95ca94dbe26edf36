import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { renderAlerts } from '../../../tools/generate/alerts/alerts.ts';
import { buildImage } from '../../../tools/image/build.ts';
import { CHART, openHelm, outputOf, ROOT } from '../../chart/support/helm.ts';
import { parseApiWrites, writesBetween } from '../../scale/api-writes.ts';
import { type ChildProcess, startChild } from '../../support/child-process.ts';
import { type Node, startNode } from '../../support/node-cluster/node.ts';
import { nodeRefusal } from '../../support/node-cluster/requirements.ts';
import { findPromtool, type Promtool } from '../../support/prometheus/promtool.ts';
import { createRecording } from '../../support/prometheus/recording.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../../system/support/deadline.ts';
import { activation, ingressKey, integration, stream, subscription, tenant } from '../../system/support/world.ts';

const refusal = nodeRefusal();
const promtool = findPromtool();
const KEY = 'an-ingress-key-of-the-shop';
const NAMESPACE = 'sluice-system';
const REDIS_PORT = 6379;
const HOOKS_PORT = 8080;
const ROLES = ['controller', 'ingress', 'dispatcher'];
/** The workspaces. Each of them has a stream, a separate subscription, and an open group key. */
const SHOPS = Array.from({ length: 20 }, (_, n) => `shop-${n}`);
/** The duration of the outage, and of the recovery, in milliseconds. Some alerts wait for two minutes. */
const AWAY_MS = 160_000;
const AFTER_MS = 60_000;
const SCRAPE_SECONDS = 15;

interface Pod {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly status: {
    readonly podIP: string;
    readonly containerStatuses: readonly { readonly restartCount: number }[];
  };
}

/**
 * Tests how an installation with replicas on a real kubelet behaves when a dependency is unavailable for two minutes.
 */
describe.skipIf(refusal !== undefined || promtool === undefined)('an outage of more than two minutes', () => {
  let node: Node;
  let folder: TemporaryFolder;
  let redis: ChildProcess;
  let hooks: Server;
  const delivered = new Set<string>();

  async function kubectl(args: readonly string[], objects?: readonly object[]): Promise<string> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    return outputOf(await node.kubectl(args, objects === undefined ? {} : { stdin: JSON.stringify(list) }));
  }

  async function pods(): Promise<readonly Pod[]> {
    return (JSON.parse(await kubectl(['get', 'pods', '-n', NAMESPACE, '-o', 'json'])) as { items: Pod[] }).items;
  }

  const startRedis = () => {
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];
    const address = ['--bind', node.network.host, '--port', `${REDIS_PORT}`, '--protected-mode', 'no'];
    redis = startChild({
      command: 'redis-server',
      args: [...address, ...settings, '--save', '', '--dir', folder.path],
      log: join(folder.path, 'redis.log'),
    });
  };

  const apiWrites = async () => parseApiWrites(await kubectl(['get', '--raw', '/metrics']));

  /** Publishes an event of a shop and returns the response's status. */
  async function publish(shop: string, id: string, address: string): Promise<number> {
    const response = await fetch(`http://${address}/events/${tenantId(shop)}/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'webhook-id': id,
        'x-sluice-group-key': 'customer-42',
      },
      body: '{}',
      signal: AbortSignal.timeout(10_000),
    });
    await response.body?.cancel();
    return response.status;
  }

  const serviceAddress = () =>
    kubectl(['get', 'service', 'sluice-ingress', '-n', NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}']);

  async function untilDelivered(id: string, address: string): Promise<void> {
    const shop = SHOPS[0] as string;
    const isAccepted = async () => (await publish(shop, id, address).catch(() => 0)) === 202;
    await eventually(`${id} is accepted`, isAccepted, { withinMs: 30_000 });
    await eventually(`${id} is delivered`, () => Promise.resolve(delivered.has(id)), { withinMs: 30_000 });
  }

  /** Scrapes all pods until the signal is aborted and returns the alerts that fired in the meantime. */
  async function firedAlerts(during: () => Promise<void>): Promise<string[]> {
    const targets = (await pods()).map(({ metadata, status }) => ({
      labels: `instance="${status.podIP}:9090",job="sluice",namespace="${NAMESPACE}",pod="${metadata.name}"`,
      url: `http://${status.podIP}:9090/metrics`,
    }));
    const recording = createRecording(SCRAPE_SECONDS);
    const ended = new AbortController();
    const scraping = (async () => {
      while (!ended.signal.aborted) {
        const next = delay(SCRAPE_SECONDS * 1_000, undefined, { signal: ended.signal }).catch(() => {});
        const signal = AbortSignal.timeout(10_000);
        const scrape = async ({ labels, url }: (typeof targets)[number]) => {
          const text = await fetch(url, { signal }).then(
            response => response.text(),
            () => undefined,
          );
          return [labels, text] as const;
        };
        recording.add(new Map(await Promise.all(targets.map(scrape))));
        await next;
      }
    })();
    await during();
    ended.abort();
    await scraping;
    const [rules] = renderAlerts();
    return recording.firedAlerts(promtool as Promtool, rules?.text ?? '');
  }

  beforeAll(async () => {
    folder = await temporaryFolder('outages');
    const image = join(folder.path, 'image');
    [node] = await Promise.all([startNode(), buildImage(ROOT, image)]);
    await node.importImage(image, 'localhost/sluice');
    startRedis();
    hooks = createServer((request, response) => {
      request.resume();
      delivered.add(`${request.headers['webhook-id']}`);
      response.writeHead(204).end();
    });
    await once(hooks.listen(HOOKS_PORT, node.network.host), 'listening');
    const run = await openHelm();
    const { host } = node.network;
    const values = {
      image: { registry: 'localhost', pullPolicy: 'Never' },
      redis: { url: `redis://${host}:${REDIS_PORT}` },
      facade: { enabled: false },
      allowedNetworks: [`${host}/32`],
      ...Object.fromEntries(ROLES.map(role => [role, { replicas: 2 }])),
    };
    const place = ['--namespace', NAMESPACE, '--create-namespace'];
    outputOf(
      await run(['install', 'sluice', CHART, ...place, '--wait', '--timeout=3m'], {
        kubeconfig: node.kubeconfig,
        values: values as {},
      }),
    );
    const url = `http://${host}:${HOOKS_PORT}/hooks`;
    for (const shop of SHOPS) {
      const objects = [
        ...tenant(shop),
        stream(shop, 'orders'),
        ingressKey(shop, KEY),
        integration(shop, shop),
        activation(shop, shop, 'customer-42'),
        subscription(shop, shop, 'orders', { url }),
      ];
      await kubectl(['apply', '--server-side', '-f', '-'], objects);
    }
    for (const [kind, condition] of [
      ['subscription', 'Live'],
      ['activation', 'Effective'],
    ]) {
      const kinds = [`${kind}.sluice.dev`, '--all', '--all-namespaces'];
      await kubectl(['wait', '--timeout=120s', `--for=condition=${condition}`, ...kinds]);
    }
    await untilDelivered('before', await serviceAddress());
  });

  afterAll(async () => {
    hooks?.close();
    await node?.stop();
    await redis?.stop();
    await folder?.remove();
  });

  async function restarts(): Promise<[string, number][]> {
    const all = (await pods()).map(
      ({ metadata, status }) => [metadata.name, status.containerStatuses[0]?.restartCount ?? -1] as [string, number],
    );
    return all.toSorted(([a], [b]) => a.localeCompare(b));
  }

  /**
   * Returns the status writes of custom resources, by kind. Kubernetes itself writes the statuses of nodes and pods.
   */
  function statusWrites(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) {
    const ours = Object.values(KINDS).map(({ plural }) => `${plural}/status`);
    const writes = Object.entries(writesBetween(before, after));
    return Object.fromEntries(writes.filter(([key]) => ours.includes(key.split(' ')[1] ?? '')));
  }

  test('of Redis does not restart any pods, and writes one status for each workspace', {
    timeout: 400_000,
  }, async () => {
    const before = await restarts();
    const writes = await apiWrites();
    const address = await serviceAddress();
    const fired = await firedAlerts(async () => {
      await redis.stop();
      await delay(AWAY_MS);
      expect(await publish(SHOPS[0] as string, 'refused', address)).toBe(503);
      expect(statusWrites(writes, await apiWrites())).toEqual({ 'APPLY workspaces/status': SHOPS.length });
      startRedis();
      await untilDelivered('after-redis', address);
      await delay(AFTER_MS);
    });
    expect(statusWrites(writes, await apiWrites())).toEqual({ 'APPLY workspaces/status': 2 * SHOPS.length });
    expect(await restarts()).toEqual(before);
    expect(before.map(([, count]) => count)).toEqual(before.map(() => 0));
    expect(fired).toEqual(['SluiceRedisDisconnected', 'SluiceRoleImpaired']);
  });

  test('of the API server does not restart any pods, and events are still delivered', {
    timeout: 400_000,
  }, async () => {
    const before = await restarts();
    const address = await serviceAddress();
    let writes: ReadonlyMap<string, number> = new Map();
    const fired = await firedAlerts(async () => {
      await node.killApiServer();
      await untilDelivered('meanwhile', address);
      await delay(AWAY_MS);
      await untilDelivered('still', address);
      await node.restartApiServer();
      writes = await apiWrites();
      await delay(AFTER_MS);
    });
    await untilDelivered('after-api-server', address);
    expect(statusWrites(writes, await apiWrites())).toEqual({});
    expect(await restarts()).toEqual(before);
    expect(fired).toEqual(['SluiceNoLeader', 'SluiceRoleImpaired']);
  });
});
