import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { INGRESS_KEY_SECRET_TYPE } from '../../../src/api/well-known.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { connect } from '../../../src/kube/client.ts';
import type { AnyObject } from '../../../src/kube/object.ts';
import { NAMESPACES, type Resource, SECRETS } from '../../../src/kube/resource.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { HINT_PARTITIONS } from '../../../src/redis/keys.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { dumpRedis } from '../../model/state/redis-dump.ts';
import type { Installation } from './installation.ts';
import { OURS } from './listed.ts';
import { activation, ingressKey, integration, type Manifest, pkg, stream, subscription, tenant } from './world.ts';

/**
 * Excludes the counts by minute, the times at which parts were swept, and the reports to accounts, because folded
 * counts are removed at different times.
 */
const COUNTS = ['arrived', 'passed', 'traffic', 'in', 'out', 'used', 'tidied'];
const COUNTED = /^\{a:[^}]*\}:(seen|grants)$/;

/** A producer and its partner's workspace. All twins use the same names except for these two. */
export interface Twin {
  readonly producer: string;
  readonly partner: string;
}

export const INTEGRATION = 'partner';
export const QUEUES = ['orders', 'refunds'];
export const PACKAGE = 'everything';
export const GROUP_KEYS = ['red', 'green', 'blue'];
export const feedOf = (queue: string) => `feed-${queue}`;
export const keyOf = ({ producer }: Twin) => `the-ingress-key-of-${producer}`;
/** Returns the name of the endpoint of a feed in the receiver. */
export const endpointOf = ({ partner }: Twin, queue: string) => `${partner}-${queue}`;
const RETRY_SOON = Array.from({ length: 16 }, () => '200ms');

/** Returns the partner's Subscription to a stream of its producer. */
export function feed(twin: Twin, queue: string, urlOf: (endpoint: string) => string, spec: object = {}): Manifest {
  const endpoint = { url: urlOf(endpointOf(twin, queue)), retrySchedule: RETRY_SOON };
  const manifest = subscription(twin.partner, twin.producer, queue, endpoint, { integration: INTEGRATION, ...spec });
  return { ...manifest, metadata: { ...manifest.metadata, name: feedOf(queue) } };
}

export function twinManifests(twin: Twin, urlOf: (endpoint: string) => string): Manifest[] {
  const { producer, partner } = twin;
  return [...new Set([producer, partner])]
    .flatMap(name => tenant(name))
    .concat([
      ingressKey(producer, keyOf(twin)),
      ...QUEUES.map(queue => stream(producer, queue)),
      pkg(producer, PACKAGE, QUEUES),
      { ...integration(producer, INTEGRATION, { workspace: partner }) },
      ...GROUP_KEYS.map(groupKey => activation(producer, INTEGRATION, groupKey)),
      ...QUEUES.map(queue => feed(twin, queue, urlOf)),
    ]);
}

/** Returns a Secret with an ingress key in any namespace. */
export const secret = (
  namespace: string,
  name: string,
  type: string,
  stringData: object,
  more: object = {},
): Manifest =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, ...more }, type, stringData }) as Manifest;

export const ingressSecret = (namespace: string, name: string, key: string): Manifest =>
  secret(namespace, name, INGRESS_KEY_SECRET_TYPE, { key });

/** The workspaces (by name) and integrations of a tenant. */
export interface Names {
  readonly workspaces: readonly string[];
  /** The integrations that they have created so far. */
  readonly integrations: readonly string[];
}

/**
 * Reads all data of other tenants: each Redis key with its content, and each object with the version that changes on
 * any write. Excludes data that does not belong to a tenant: hints of replays, the list of tenants, and the Lease.
 */
export interface Outside {
  readonly look: () => Promise<{
    readonly redis: Readonly<Record<string, string>>;
    readonly objects: readonly string[];
  }>;
  readonly redis: RedisClient;
  readonly close: () => Promise<void>;
}

/** Returns the data of other tenants after it has stopped changing. */
export async function lookSettled(outside: Outside): ReturnType<Outside['look']> {
  for (let last = await outside.look(); ; ) {
    await delay(500);
    const now = await outside.look();
    if (isDeepStrictEqual(now, last)) return now;
    last = now;
  }
}

export async function openOutside({ cluster, redis: server }: Installation, names: Names): Promise<Outside> {
  const redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  const client = connect({ kubeconfig: cluster.kubeconfig });
  const theirs = new Set(names.workspaces);
  const tags = [
    ...names.workspaces.flatMap(name => [
      `{t:${tenantId(name)}}`,
      `{q:${tenantId(name)}:`,
      `{a:${publicId('Account', '', name)}}`,
      ...names.integrations.map(each => `{i:${publicId('Integration', name, each)}}`),
    ]),
    ...Array.from({ length: HINT_PARTITIONS }, (_, n) => `{a:${n}}`),
    '{c}',
  ];
  const resources: Resource[] = [...OURS, NAMESPACES, SECRETS];

  async function versions(): Promise<string[]> {
    const lists = await Promise.all(
      resources.map(async resource => {
        const { items } = await client.list(resource, ({ metadata }: AnyObject) => metadata);
        return items
          .filter(({ namespace, name }) => !theirs.has(namespace ?? name))
          .map(
            ({ namespace = '', name, resourceVersion }) => `${resource.kind} ${namespace}/${name} ${resourceVersion}`,
          );
      }),
    );
    return lists.flat().toSorted();
  }

  /** Redis returns the fields of a large hash in an order that changes while the hash is moved to a larger table. */
  const canonical = (value: object) =>
    Array.isArray(value)
      ? value
      : Object.entries(value)
          .filter(([field]) => !COUNTS.includes(field))
          .toSorted(([a], [b]) => (a < b ? -1 : 1));

  async function content(): Promise<Record<string, string>> {
    const dump = await dumpRedis(redis);
    const kept: [string, string][] = [];
    for (const kind of ['hashes', 'sets', 'sorted', 'streams'] as const) {
      for (const [key, value] of dump[kind]) {
        if (!tags.some(tag => key.startsWith(tag)) && !COUNTED.test(key))
          kept.push([key, JSON.stringify(canonical(value))]);
      }
    }
    return Object.fromEntries(kept);
  }

  return {
    look: async () => ({ redis: await content(), objects: await versions() }),
    redis,
    close: async () => {
      await redis.close();
      await client.close();
    },
  };
}
