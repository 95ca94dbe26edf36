import { randomUUID } from 'node:crypto';
import { type AuditDeps, createAudit } from '../../../src/controller/audit/audit.ts';
import type { Difference } from '../../../src/controller/audit/drift.ts';
import { createGarbageCollector } from '../../../src/controller/audit/garbage-collector.ts';
import { type Caches, INDEXES } from '../../../src/controller/caches/caches.ts';
import type { Context } from '../../../src/controller/context/context.ts';
import { openGatesOf } from '../../../src/controller/kinds/activation/open-gates.ts';
import { reconcilePair } from '../../../src/controller/kinds/activation/reconcile.ts';
import { gatherTenant, objectsOfTenant } from '../../../src/controller/routes/snapshot.ts';
import { createTenants } from '../../../src/controller/routes/tenants.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import type { CompileOptions } from '../../../src/core/routing/compile-routes.ts';
import { type AnyObject, keyOf } from '../../../src/kube/object.ts';
import { createStore, type Indexers } from '../../../src/kube/store.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { createControlAudit } from '../../../src/redis/control-audit.ts';
import { createControlStore } from '../../../src/redis/control-store.ts';
import { createControlSweep } from '../../../src/redis/control-sweep.ts';
import { createHintIndex } from '../../../src/redis/hints.ts';
import { CLUSTER_KEYS } from '../../../src/redis/keys.ts';
import { createLocks } from '../../../src/time/locks.ts';
import { objectOf } from './test-context.ts';

export const NOW_MS = 1_800_000_000_000;

/** Calls to Redis, one entry for each command or script. */
function recording(redis: RedisClient, calls: string[]): RedisClient {
  return {
    ...redis,
    run: (name, keys, args) => {
      calls.push(name);
      return redis.run(name, keys, args);
    },
    call: (command, key, ...args) => {
      calls.push(command.toLowerCase());
      return redis.call(command, key, ...args);
    },
    readHash: key => {
      calls.push('hgetall');
      return redis.readHash(key);
    },
  };
}

export interface AuditedTenantOptions {
  /** Name of the workspace, for tests with several. */
  readonly name?: string;
  /** Whether the client separates the cluster-wide keys from those of other tests. */
  readonly clusterIsOwn?: boolean;
  readonly sealEndpoint?: CompileOptions['sealEndpoint'];
}

const FINALIZED = { finalizers: ['sluice.dev/finalizer'] };

/**
 * Creates one workspace of a leading controller: caches that a test fills, the real workers on a real Redis, audit and
 * sweep. Work that these enqueue runs when the test starts it.
 */
export async function createAuditedTenant(client: RedisClient, options: AuditedTenantOptions = {}) {
  const name = options.name ?? `t${randomUUID().replaceAll('-', '').slice(0, 12)}`;
  const calls: string[] = [];
  const redis = recording(client, calls);
  const clock = { ms: NOW_MS };
  const nowMs = (): number => clock.ms;
  const stores = {
    ...Object.fromEntries(
      Object.entries(INDEXES).map(([kind, indexers]) => [kind, createStore(indexers as Indexers<AnyObject>)]),
    ),
    namespaces: createStore<object>(),
    ingressKeys: createStore<{ readonly namespace: string }>({ namespace: ({ namespace }) => [namespace] }),
  } as unknown as {
    readonly [K in keyof Caches]: { set: (key: string, value: unknown) => void; remove: (key: string) => void };
  };
  const caches = Object.fromEntries(
    Object.entries(stores).map(([kind, store]) => [kind, { store }]),
  ) as unknown as Caches;
  const put = (kind: keyof Caches, object: AnyObject): void => stores[kind].set(keyOf(object.metadata), object);

  const fence = { epoch: 1 };
  const fenced = createControlStore(redis);
  // All tests on this Redis share the list of workspaces, with different epochs: this write has no fence.
  const control: typeof fenced = options.clusterIsOwn
    ? fenced
    : {
        ...fenced,
        enlist: async (_fence, tenant) => {
          if ((await redis.call('sismember', CLUSTER_KEYS.tenants, tenant)) === 0)
            await redis.call('sadd', CLUSTER_KEYS.tenants, tenant);
        },
        patch: async (epoch, patches) => {
          const shared = patches.filter(({ meta }) => meta === CLUSTER_KEYS.meta);
          for (const { command, key, args } of shared.flatMap(({ ops }) => ops))
            await redis.call(command, key, ...args);
          await fenced.patch(
            epoch,
            patches.filter(patch => !shared.includes(patch)),
          );
        },
      };
  const hints = { r: createHintIndex(redis, 'r'), d: createHintIndex(redis, 'd') };
  const locks = createLocks();
  const tenants = createTenants({
    control,
    queueHints: hints.r,
    inboxHints: hints.d,
    nowMs,
    compile: {
      queueMaxBytes: 1_000_000,
      judgeEndpoint: () => 'ok',
      sealEndpoint: options.sealEndpoint ?? ((sub, { url }) => `${sub} ${url}`),
    },
    fence: () => fence.epoch,
    explain: error => error,
    prepare: async () => {},
    gather: (each, isRemoved) => gatherTenant(caches, isRemoved, each),
    objectsOf: each => objectsOfTenant(caches, each),
    isPaused: () => false,
    openGates: each => openGatesOf({ caches, nowMs }, each),
    exclusively: locks.exclusively,
    onChanged: () => {},
  });
  const pair = reconcilePair(
    {
      caches,
      tenants,
      control,
      inboxHints: hints.d,
      nowMs,
      wallMs: nowMs,
      fence: () => fence.epoch,
      explain: (error: unknown) => error,
      shared: locks.shared,
    } as unknown as Context,
    { latest: (object: unknown) => object, write: async () => {} } as never,
  );

  const queue = { tenants: new Set<string>(), pairs: new Set<string>(), accounts: new Set<string>() };
  const told: string[] = [];
  const counted: string[] = [];
  const swept: string[] = [];
  const relisted: string[] = [];
  /** Objects that the API server has and the caches do not. */
  const actual = { pairs: [] as AnyObject[], onRelist: (_what: string): void => {} };
  const store = createControlAudit(redis, () => Promise.resolve());
  const relist = async (what: string): Promise<void> => {
    relisted.push(what);
    actual.onRelist(what);
  };
  const deps: AuditDeps = {
    caches,
    store,
    tenants,
    isPaused: () => false,
    enqueueTenant: each => queue.tenants.add(each),
    enqueuePair: each => queue.pairs.add(each),
    enqueueAccount: each => queue.accounts.add(each),
    isPairPending: each => queue.pairs.has(each),
    isAccountPending: each => queue.accounts.has(each),
    relist,
    readPair: async () => actual.pairs as never,
    noteHealths: () => {},
    noteDeliveries: () => {},
    events: {
      record: ({ metadata }, { type, reason, message }) => told.push(`${metadata.name} ${type} ${reason} ${message}`),
    },
    metrics: { repaired: what => counted.push(what) },
    nowMs,
    log: { warn: () => {} } as never,
  };
  const audit = createAudit(deps);
  const garbage = createGarbageCollector({
    caches,
    tenants,
    store,
    control,
    purger: createControlSweep(redis),
    isPaused: () => false,
    fence: () => fence.epoch,
    relist,
    enqueueTenant: deps.enqueueTenant,
    metrics: { swept: what => swept.push(what) },
    nowMs,
    log: { info: () => {} } as never,
  });
  const listed = (): Promise<ReadonlySet<string>> => store.readTenants();

  async function look(): Promise<Difference[]> {
    return audit.compareTenant(name, await listed());
  }

  /** Runs the workers on their queues. */
  async function work(): Promise<void> {
    const todo = { tenants: [...queue.tenants], pairs: [...queue.pairs], accounts: [...queue.accounts] };
    for (const each of Object.values(queue)) each.clear();
    for (const each of todo.tenants) await tenants.sync(each);
    for (const each of todo.pairs) await pair(each, { failures: 0, signal: new AbortController().signal } as never);
    for (const each of todo.accounts) {
      const account = caches.Account.store.get(each);
      if (account === undefined) continue;
      const { plan, includedTokens } = account.spec;
      await control.setAccount(fence.epoch, publicId('Account', '', each), plan, includedTokens);
    }
  }

  const partner = `${name}-partner`;
  return {
    name,
    tenant: tenantId(name),
    account: publicId('Account', '', name),
    partner,
    integration: publicId('Integration', name, 'ada'),
    sub: publicId('Subscription', partner, 'orders'),
    caches,
    tenants,
    control,
    fence,
    clock,
    calls,
    queue,
    told,
    counted,
    swept,
    relisted,
    actual,
    audit,
    garbage,
    store,
    put,
    remove: (kind: keyof Caches, object: AnyObject): void => stores[kind].remove(keyOf(object.metadata)),
    listed,
    look,
    work,
    /** Runs the worker of one activation's pair after `failures` failed tries. */
    reconcilePair: (key: string, failures = 0): Promise<unknown> =>
      pair(key, { failures, signal: new AbortController().signal } as never),
    activation: (groupKey: string, spec: object = {}): AnyObject =>
      objectOf<'Activation'>(`ada-${groupKey}`, { integration: 'ada', groupKey, ...spec } as never, {
        namespace: name,
      }),
    objects: {
      account: objectOf<'Account'>(name, { plan: 'Free', includedTokens: 10_000, owners: [] } as never, {
        namespace: undefined,
      }),
      workspace: objectOf<'Workspace'>(name, { account: name } as never, { namespace: undefined, metadata: FINALIZED }),
      stream: objectOf<'CatalogStream'>(
        'orders',
        { public: true, retention: '1h', deletionPolicy: 'Retain' } as never,
        {
          namespace: name,
          metadata: { uid: `stream-${name}`, ...FINALIZED },
        },
      ),
      integration: objectOf<'Integration'>('ada', { workspace: partner } as never, { namespace: name }),
      subscription: objectOf<'Subscription'>(
        'orders',
        { producer: name, integration: 'ada', stream: 'orders', endpoint: { url: 'https://example.com/' } } as never,
        {
          namespace: partner,
          metadata: { uid: `sub-${name}`, ...FINALIZED },
          status: { admittedAt: '2026-01-01T00:00:00Z' },
        },
      ),
    },
    /** Fills the caches, and applies everything. */
    async begin(groupKeys: readonly string[]): Promise<void> {
      const { account, workspace, stream, integration, subscription } = this.objects;
      put('Account', account);
      put('Workspace', workspace);
      stores.namespaces.set(name, { workspace: name, deleting: false });
      stores.ingressKeys.set(`${name}/key`, { namespace: name, sha256: 'ab'.repeat(32) });
      put('CatalogStream', stream);
      put('Integration', integration);
      put('Subscription', subscription);
      for (const groupKey of groupKeys) put('Activation', this.activation(groupKey));
      queue.tenants.add(name);
      queue.accounts.add(name);
      await work();
    },
    /** Runs both comparisons of the workspace and its account, then the workers. */
    async pass(): Promise<void> {
      const [found, accounts] = [await look(), await audit.compareAccounts([name])];
      await audit.repair({ tenants: new Map([[name, found]]), accounts }, await listed());
      await work();
    },
  };
}

export type AuditedTenant = Awaited<ReturnType<typeof createAuditedTenant>>;
