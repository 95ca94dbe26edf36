import { pairKey } from '../../../src/controller/caches/caches.ts';
import type { Context } from '../../../src/controller/context/context.ts';
import { finalizeUnlessPaused, PAUSABLE, unlessPaused } from '../../../src/controller/context/paused.ts';
import { CLUSTER_SECRET_ACCESS } from '../../../src/controller/context/secret-access.ts';
import { type CommonStatus, createStatusWriter } from '../../../src/controller/engine/status-writer.ts';
import { reconcileAccount } from '../../../src/controller/kinds/account/reconcile.ts';
import { openGatesOf } from '../../../src/controller/kinds/activation/open-gates.ts';
import { reconcilePair } from '../../../src/controller/kinds/activation/reconcile.ts';
import { finalizeStream, holdsEvents } from '../../../src/controller/kinds/catalog-stream/reconcile.ts';
import { isEnded, reconcileIntegration } from '../../../src/controller/kinds/integration/reconcile.ts';
import { createEndpointHealths } from '../../../src/controller/kinds/subscription/endpoint-healths.ts';
import { finalizeSubscription, reconcileSubscription } from '../../../src/controller/kinds/subscription/reconcile.ts';
import { finalizeWorkspace } from '../../../src/controller/kinds/workspace/reconcile.ts';
import { gatherTenant, objectsOfTenant } from '../../../src/controller/routes/snapshot.ts';
import { createTenants } from '../../../src/controller/routes/tenants.ts';
import { sealEndpoint } from '../../../src/core/delivery/endpoint-config.ts';
import { keyRingOf } from '../../../src/core/delivery/key-ring.ts';
import { DEFAULT_POLICY } from '../../../src/core/limits/limits.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { type AnyObject, keyOf } from '../../../src/kube/object.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { createPartsControl } from '../../../src/part/control/parts-control.ts';
import { createControlRecord } from '../../../src/record/control-store.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createLocks } from '../../../src/time/locks.ts';
import type { ModelKind, ModelObject, Objects } from '../state/objects.ts';

export const ROOT_KEY = new Uint8Array(32).fill(7);
const KEYS = keyRingOf(ROOT_KEY);
export const SEAL_KEYS = KEYS.first().sealKeys;

/** Returns the pair (integration, group key) of a tenant to which an activation refers. */
export interface PairName {
  readonly integration: string;
  readonly groupKey: string;
}

/** A leading controller: the real reconcilers with the model's objects, without the engine that calls them. */
export type Controller = Awaited<ReturnType<typeof createController>>;

function createStuckTimes(nowMs: () => number): Pick<Context, 'stuckForMs' | 'noteWaiting'> {
  const stuckSince = new Map<string, number>();
  return {
    stuckForMs({ metadata: { uid } }) {
      const sinceMs = stuckSince.get(uid) ?? nowMs();
      stuckSince.set(uid, sinceMs);
      return nowMs() - sinceMs;
    },
    noteWaiting: ({ metadata }) => void stuckSince.delete(metadata.uid),
  };
}

export async function createController(
  redis: RedisClient,
  objects: Objects,
  nowMs: () => number,
  /** Set to false to leave objects that are being deleted unchanged. */
  finalizes = true,
) {
  const { caches } = objects;
  const control = createPartsControl(redis, createControlRecord(redis), nowMs);
  const locks = createLocks();
  let epoch: number | undefined;
  const fence = () => {
    if (epoch === undefined) throw new Error('not leading');
    return epoch;
  };
  const explain = (error: unknown) => error;
  const tenants = createTenants({
    control,
    nowMs,
    fence,
    explain,
    compile: {
      queueMaxBytes: 1e9,
      judgeEndpoint: () => 'ok',
      sealEndpoint: (subscription, config) => sealEndpoint(SEAL_KEYS, subscription, config),
      openHeader: () => undefined,
      keys: KEYS,
    },
    prepare: async () => {},
    gather: (name, isRemoved) => gatherTenant(caches, isRemoved, name, () => false),
    objectsOf: name => objectsOfTenant(caches, name),
    knowsKeys: () => true,
    openGates: name => openGatesOf({ caches, nowMs }, name),
    exclusively: locks.exclusively,
    onChanged: () => {},
    isPaused: objects.isPaused,
  });
  const client = {
    get: (_resource: unknown, { name }: { name: string }) => Promise.resolve({ metadata: { name } }),
    apply: (resource: { kind: string }, target: { namespace?: string; name: string }, body: { status?: object }) =>
      Promise.resolve(
        body.status === undefined
          ? { metadata: target }
          : objects.writeStatus(resource.kind as ModelKind, keyOf(target), body.status),
      ),
  } as unknown as Pick<KubeClient, 'get' | 'create' | 'apply' | 'mergePatch'>;
  const log = createLogger({ level: 'silent' });
  const context: Context = {
    client,
    instance: '',
    caches,
    tenants,
    control,
    mails: { reserve: async () => undefined, release: async () => undefined },
    limits: DEFAULT_POLICY,
    shortages: { isShort: () => false, note: () => {} },
    fence,
    nowMs,
    wallMs: nowMs,
    deletingForMs: ({ metadata }) =>
      nowMs() - Date.parse(metadata.deletionTimestamp ?? new Date(nowMs()).toISOString()),
    ...createStuckTimes(nowMs),
    dataPlane: { awayForMs: () => 0, note: () => {} },
    secretAccess: CLUSTER_SECRET_ACCESS,
    keys: KEYS,
    isBacklogAtRisk: () => undefined,
    explain,
    shared: locks.shared,
    recordForcedRemoval: () => {},
  };
  const endpointHealths = createEndpointHealths({ read: control.readHealth, onNews: () => {}, log });
  const attempt = { failures: 0, signal: new AbortController().signal, log };
  const writerOf = (kind: ModelKind) =>
    createStatusWriter<never, CommonStatus>({ client, resource: resourceOf(kind), wallMs: nowMs });
  const statuses = {
    CatalogStream: writerOf('CatalogStream'),
    Integration: writerOf('Integration'),
    Subscription: writerOf('Subscription'),
  };
  const reconcilers = {
    account: reconcileAccount({
      ...context,
      limitUse: { limitsOf: () => ({}), levelsOf: () => ({ reached: [], near: [] }) },
    }),
    integration: unlessPaused(
      context,
      PAUSABLE.Integration,
      reconcileIntegration({ ...context, deliveries: { of: () => undefined } }),
      { closes: isEnded },
    ),
    subscription: reconcileSubscription({ ...context, endpointHealths }),
    finalizeSubscription: finalizeSubscription(context),
    finalizeStream: finalizeUnlessPaused(
      context,
      PAUSABLE.CatalogStream,
      finalizeStream(context),
      holdsEvents(context),
    ),
    finalizeWorkspace: finalizeWorkspace({ ...context, quotas: { ensure: async () => {}, forget: () => {} } }),
    pair: reconcilePair(context, writerOf('Activation') as never),
  };

  const isDeleting = ({ metadata }: AnyObject) => metadata.deletionTimestamp !== undefined;

  async function reconcileIntegrations(name: string): Promise<void> {
    for (const object of objects.list('Integration', name)) {
      const { status, conditions } = await reconcilers.integration(object, attempt);
      await statuses.Integration.write(object as never, status ?? {}, conditions);
    }
  }

  /** Returns true if one of them was removed or has rotated its secret, so the routes need to be compiled again. */
  async function reconcileSubscriptions(name: string): Promise<boolean> {
    let went = false;
    for (const object of objects.subscriptionsTo(name)) {
      if (isDeleting(object)) {
        if (!finalizes || (await reconcilers.finalizeSubscription(object)) !== 'done') continue;
        objects.remove('Subscription', keyOf(object.metadata));
        went = true;
      } else {
        const { status, conditions } = await reconcilers.subscription(object);
        await statuses.Subscription.write(object as never, status ?? {}, conditions);
        // The routes contain the sealed salt of the secret and its rotation time.
        const { salt, rotatedAt } = object.status?.signing ?? {};
        went ||= salt !== status?.signing?.salt || rotatedAt !== status?.signing?.rotatedAt;
      }
    }
    return went;
  }

  async function reconcileStreams(name: string): Promise<boolean> {
    let went = false;
    for (const object of objects.list('CatalogStream', name).filter(isDeleting)) {
      if (!finalizes || (await reconcilers.finalizeStream(object, attempt)) !== 'done') continue;
      objects.remove('CatalogStream', keyOf(object.metadata));
      went = true;
    }
    return went;
  }

  /** A package is removed when no Block refers to it anymore. */
  function releasePackages(name: string): boolean {
    const named = new Set(
      objects.list('Block', name).flatMap(({ spec: { target } }) => (target.kind === 'Package' ? [target.name] : [])),
    );
    const free = objects.list('Package', name).filter(object => isDeleting(object) && !named.has(object.metadata.name));
    for (const { metadata } of free) objects.remove('Package', keyOf(metadata));
    return free.length > 0;
  }

  const pairOf = (name: string, { integration, groupKey }: PairName) =>
    reconcilers.pair(pairKey(name, integration, groupKey), attempt);

  /** Removes a workspace when its routes are closed. The objects in its namespace are kept. */
  async function releaseWorkspace(name: string): Promise<void> {
    const workspace = objects.workspace(name);
    if (workspace === undefined || !isDeleting(workspace) || !finalizes) return;
    await reconcilers.finalizeWorkspace(workspace);
    objects.remove('Workspace', name);
  }

  async function settleRoutes(name: string): Promise<void> {
    await releaseWorkspace(name);
    for (let again = true; again; ) {
      await tenants.sync(name);
      await reconcileIntegrations(name);
      const packagesWent = releasePackages(name);
      const streamsWent = await reconcileStreams(name);
      again = (await reconcileSubscriptions(name)) || streamsWent || packagesWent;
    }
  }

  return {
    control,
    /** Starts a term, which completes all work that earlier leaders have started. */
    async lead(names: readonly string[]): Promise<void> {
      const answer = await control.lead('uid', 1, nowMs());
      if ('other' in answer) throw new Error('this Redis belongs to another cluster');
      epoch = answer.epoch;
      tenants.forget('all');
      for (const account of objects.accounts()) await reconcilers.account(account);
      for (const name of names) {
        await settleRoutes(name);
        const pairs = new Map(
          objects.list('Activation', name).map(({ spec }) => [`${spec.integration}/${spec.groupKey}`, spec]),
        );
        for (const pair of pairs.values()) await pairOf(name, pair);
      }
      await control.markClusterReady(fence());
    },
    isLeading: () => epoch !== undefined,
    /** Applies a change of the objects from which routes are compiled, and of the affected pairs. */
    async settle(name: string, pairs: readonly PairName[] = []): Promise<void> {
      await settleRoutes(name);
      for (const pair of pairs) await pairOf(name, pair);
    },
    settlePair: pairOf,
    /** Applies the plan of an account, and the routes of the tenants for which it pays. */
    async settleAccount(name: string): Promise<void> {
      for (const account of objects.accounts()) if (account.metadata.name === name) await reconcilers.account(account);
      for (const { metadata } of caches.Workspace.store.byIndex('account', name)) await settleRoutes(metadata.name);
    },
    /** Reads and writes a lost slot because its state is unknown. */
    forget: (name: string): void => tenants.forget([name]),
  };
}

/** Returns the pairs to which any Activation of the integration refers. */
export function pairsOf(objects: Objects, name: string, integration: string): PairName[] {
  return objects
    .list('Activation', name)
    .map(({ spec }: ModelObject<'Activation'>) => spec)
    .filter(spec => spec.integration === integration);
}
