import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { type Cached, type Caches, INDEXES } from '../../../src/controller/caches/caches.ts';
import type { Context } from '../../../src/controller/context/context.ts';
import { CLUSTER_SECRET_ACCESS } from '../../../src/controller/context/secret-access.ts';
import type { Deliveries } from '../../../src/controller/kinds/integration/deliveries.ts';
import type { EndpointHealths } from '../../../src/controller/kinds/subscription/endpoint-healths.ts';
import type { WorkspaceQuotas } from '../../../src/controller/kinds/workspace/quota.ts';
import { keyRingOf } from '../../../src/core/delivery/key-ring.ts';
import { DEFAULT_POLICY } from '../../../src/core/limits/limits.ts';
import type { CompiledTenant } from '../../../src/core/routing/compile-routes.ts';
import { type AnyObject, keyOf } from '../../../src/kube/object.ts';
import { createStore, type Indexers } from '../../../src/kube/store.ts';

/** The default context for tests. */
export function objectOf<K extends KindName>(
  name: string,
  spec: Cached<K>['spec'],
  more: {
    readonly namespace?: string | undefined;
    readonly metadata?: Partial<AnyObject['metadata']>;
    readonly status?: object;
  } = {},
): Cached<K> {
  const namespace = 'namespace' in more ? more.namespace : 'acme';
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: `uid-${name}`,
      resourceVersion: '1',
      generation: 1,
      finalizers: ['sluice.dev/finalizer'],
      ...more.metadata,
    },
    spec,
    ...(more.status === undefined ? {} : { status: more.status }),
  } as Cached<K>;
}

/** Additional parts that some kinds need. */
interface OfKinds {
  readonly quotas: WorkspaceQuotas;
  readonly deliveries: Pick<Deliveries, 'of'>;
  readonly endpointHealths: Pick<EndpointHealths, 'current'>;
}

/** The objects in the caches. Each Workspace has a separate namespace. */
export type Objects = { readonly [K in KindName]?: readonly Cached<K>[] };

/**
 * Creates a context with caches that a test fills, without an API server and without Redis. Records the objects that
 * had to be in force, and all API server calls.
 */
export function createTestContext(
  objects: Objects,
  options: {
    readonly paused?: CompiledTenant['paused'];
    readonly namespaceDeleting?: boolean;
    /** How each Subscription was closed while its workspace was paused. */
    readonly closure?: 'Blocked' | 'Ended';
    readonly wallMs?: number;
    readonly deletingForMs?: number;
    readonly awayForMs?: number;
  } = {},
) {
  const inForce: string[] = [];
  const asked: string[] = [];
  const forceRemoved: string[] = [];
  const statuses: object[] = [];
  const namespaces = createStore<object>();
  for (const { metadata } of objects.Workspace ?? []) {
    namespaces.set(metadata.name, { workspace: metadata.name, deleting: options.namespaceDeleting === true });
  }
  const kinds = Object.fromEntries(
    Object.entries(INDEXES).map(([kind, indexers]) => {
      const store = createStore(indexers as Indexers<AnyObject>);
      for (const object of objects[kind as KindName] ?? []) store.set(keyOf(object.metadata), object);
      return [kind, { store }];
    }),
  );
  const ingressKeys = createStore<object>({ namespace: () => [] });
  const invitationSecrets = createStore<object>();
  const caches = {
    ...kinds,
    namespaces: { store: namespaces },
    ingressKeys: { store: ingressKeys },
    invitationSecrets: { store: invitationSecrets },
    signingSecrets: { store: createStore<object>() },
  };
  const context = {
    caches: caches as unknown as Caches,
    wallMs: () => options.wallMs ?? 0,
    nowMs: () => options.wallMs ?? 0,
    deletingForMs: () => options.deletingForMs ?? 0,
    stuckForMs: () => options.deletingForMs ?? 0,
    noteWaiting: () => {},
    dataPlane: { awayForMs: () => options.awayForMs ?? 0, note: () => {} },
    shortages: { isShort: () => undefined, note: () => {} },
    mails: { reserve: async () => undefined, release: async () => undefined },
    limits: DEFAULT_POLICY,
    keys: keyRingOf(Buffer.alloc(32, 7)),
    deliveries: { of: () => undefined },
    isBacklogAtRisk: () => undefined,
    endpointHealths: { current: async () => 'unknown' as const },
    recordForcedRemoval: (_kind: KindName, { metadata }: AnyObject, waitedFor: string) =>
      forceRemoved.push(`${metadata.name} ${waitedFor}`),
    tenants: {
      inForce: async (tenant: string, { metadata }: AnyObject) => {
        inForce.push(`${tenant} ${metadata.name}`);
        return { paused: options.paused ?? new Map(), verdicts: new Map() };
      },
      closedBy: async (tenant: string, { metadata }: AnyObject) => {
        inForce.push(`${tenant} ${metadata.name}, closed`);
        return { paused: options.paused ?? new Map(), routes: { queues: {} } };
      },
      closureOf: () => options.closure,
    },
    secretAccess: CLUSTER_SECRET_ACCESS,
    quotas: { ensure: async () => {}, forget: () => {} },
    client: {
      apply: async (_resource: object, { name }: { readonly name: string }, body: { readonly status?: object }) => {
        if (body.status !== undefined) statuses.push({ name, ...body.status });
        return { metadata: { resourceVersion: '2' }, status: body.status };
      },
      get: async (_resource: object, { name }: { readonly name: string }) => {
        asked.push(name);
        return { metadata: options.namespaceDeleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {} };
      },
    },
  };
  return { context: context as unknown as Context & OfKinds, inForce, asked, forceRemoved, statuses };
}
