import { randomUUID } from 'node:crypto';
import { createAudit } from '../../../src/controller/audit/audit.ts';
import type { Difference } from '../../../src/controller/audit/drift.ts';
import { createGarbageCollector } from '../../../src/controller/audit/garbage-collector.ts';
import type { Caches } from '../../../src/controller/caches/caches.ts';
import type { Context } from '../../../src/controller/context/context.ts';
import { openGatesOf } from '../../../src/controller/kinds/activation/open-gates.ts';
import { reconcilePair } from '../../../src/controller/kinds/activation/reconcile.ts';
import { gatherTenant, objectsOfTenant as objectsInCaches } from '../../../src/controller/routes/snapshot.ts';
import { createTenants } from '../../../src/controller/routes/tenants.ts';
import { keyRingOf } from '../../../src/core/delivery/key-ring.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import type { CompileOptions } from '../../../src/core/routing/compile-routes.ts';
import type { AnyObject } from '../../../src/kube/object.ts';
import { createPartAudit } from '../../../src/part/control/part-audit.ts';
import { createPartsControl } from '../../../src/part/control/parts-control.ts';
import { createPartControlSweep } from '../../../src/part/state/control-sweep.ts';
import { createControlAudit, type PartAudit } from '../../../src/record/control-audit.ts';
import { type ControlRecord, type ControlStore, createControlRecord } from '../../../src/record/control-store.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { CLUSTER_KEYS } from '../../../src/redis/keys.ts';
import { createLocks } from '../../../src/time/locks.ts';
import { activationOf, objectsOfTenant } from './tenant-objects.ts';
import { createTestCaches } from './test-caches.ts';

export const NOW_MS = 1_800_000_000_000;

/** Redis calls, with one entry for each command or script. */
function recording(redis: RedisClient, calls: string[]): RedisClient {
  return {
    ...redis,
    run: (name, keys, args) => {
      calls.push(name);
      return redis.run(name, keys, args);
    },
    runNamed: (script, call) => {
      calls.push(script.name);
      return redis.runNamed(script, call);
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
  /** The workspace's name, for tests with several workspaces. */
  readonly name?: string;
  /** True if the client separates the cluster-wide keys from the keys of other tests. */
  readonly clusterIsOwn?: boolean;
  readonly sealEndpoint?: CompileOptions['sealEndpoint'];
}

/**
 * Returns the store. Writes to data shared by all tests on this Redis are not fenced because the tests use different
 * epochs.
 */
function withSharedCluster(redis: RedisClient, fenced: ControlRecord): ControlRecord {
  return {
    ...fenced,
    enlist: async (_fence, tenant) => {
      if ((await redis.call('sismember', CLUSTER_KEYS.tenants, tenant)) === 0)
        await redis.call('sadd', CLUSTER_KEYS.tenants, tenant);
    },
    patch: async (epoch, patches) => {
      const shared = patches.filter(({ meta }) => meta === CLUSTER_KEYS.meta);
      for (const { command, key, args } of shared.flatMap(({ ops }) => ops)) await redis.call(command, key, ...args);
      await fenced.patch(
        epoch,
        patches.filter(patch => !shared.includes(patch)),
      );
    },
  };
}

interface Basis {
  /** Only for this tenant, or undefined for all tenants. */
  readonly tenant: string | undefined;
  readonly redis: RedisClient;
  readonly caches: Caches;
  readonly control: ControlStore;
  readonly nowMs: () => number;
  readonly fence: () => number;
}

/** Creates the workers of a leading controller, and the queues from which they take their work. */
function createWorkers({ caches, control, nowMs, fence }: Basis, sealEndpoint: CompileOptions['sealEndpoint']) {
  const locks = createLocks();
  const explain = (error: unknown) => error;
  const tenants = createTenants({
    control,
    nowMs,
    compile: {
      queueMaxBytes: 1_000_000,
      judgeEndpoint: () => 'ok',
      sealEndpoint,
      openHeader: () => undefined,
      keys: keyRingOf(new Uint8Array(32)),
    },
    fence,
    explain,
    prepare: async () => {},
    gather: (each, isRemoved) => gatherTenant(caches, isRemoved, each),
    objectsOf: each => objectsInCaches(caches, each),
    knowsKeys: () => true,
    isPaused: () => false,
    openGates: each => openGatesOf({ caches, nowMs }, each),
    exclusively: locks.exclusively,
    onChanged: () => {},
  });
  const context = { caches, tenants, control, nowMs, wallMs: nowMs, fence, explain };
  const reconcile = reconcilePair(
    { ...context, shared: locks.shared } as unknown as Context,
    { latest: (object: unknown) => object, write: async () => {} } as never,
  );
  const pair = (key: string, failures = 0): Promise<unknown> =>
    reconcile(key, { failures, signal: new AbortController().signal } as never);
  const queue = { tenants: new Set<string>(), pairs: new Set<string>(), accounts: new Set<string>() };

  return {
    tenants,
    pair,
    queue,
    /** Runs the workers for their queues. */
    async work(): Promise<void> {
      const todo = { tenants: [...queue.tenants], pairs: [...queue.pairs], accounts: [...queue.accounts] };
      for (const each of Object.values(queue)) each.clear();
      for (const each of todo.tenants) await tenants.sync(each);
      for (const each of todo.pairs) await pair(each);
      for (const each of todo.accounts) {
        const account = caches.Account.store.get(each);
        if (account === undefined) continue;
        const { plan, includedTokens } = account.spec;
        await control.setAccount(fence(), publicId('Account', '', each), plan, includedTokens);
      }
    },
  };
}

/** Returns the audit without parts that belong to other tests on this Redis. */
function ofTenant(parts: PartAudit, tenant: string | undefined): PartAudit {
  if (tenant === undefined) return parts;
  return {
    ...parts,
    async *scan() {
      for await (const page of parts.scan()) yield page.filter(part => part.tenant === tenant);
    },
  };
}

/** Creates the audit and the garbage collector of a leading controller, which record their reports. */
function createAuditors(
  { tenant, redis, caches, control, nowMs, fence }: Basis,
  { tenants, queue }: ReturnType<typeof createWorkers>,
) {
  const events: string[] = [];
  const repaired: string[] = [];
  const swept: string[] = [];
  const relisted: string[] = [];
  /** Objects that exist on the API server and not in the caches. */
  const actual = { pairs: [] as AnyObject[], onRelist: (_what: string): void => {} };
  const pace = () => Promise.resolve();
  const record = createControlAudit(redis, pace);
  const store = { ...record, parts: ofTenant(createPartAudit(redis, pace), tenant) };
  const shared = {
    caches,
    store,
    tenants,
    nowMs,
    isPaused: () => false,
    enqueueTenant: (each: string) => void queue.tenants.add(each),
    relist: async (what: string): Promise<void> => {
      relisted.push(what);
      actual.onRelist(what);
    },
  };
  const audit = createAudit({
    ...shared,
    enqueuePair: each => queue.pairs.add(each),
    enqueueAccount: each => queue.accounts.add(each),
    isPairPending: each => queue.pairs.has(each),
    isAccountPending: each => queue.accounts.has(each),
    readPair: async () => actual.pairs as never,
    noteHealths: () => {},
    noteDeliveries: () => {},
    events: {
      record: ({ metadata }, { type, reason, message }) => events.push(`${metadata.name} ${type} ${reason} ${message}`),
    },
    metrics: { repaired: what => repaired.push(what) },
    log: { warn: () => {} } as never,
  });
  const garbage = createGarbageCollector({
    ...shared,
    control,
    purger: createPartControlSweep(redis, control.patch),
    fence,
    metrics: { swept: what => swept.push(what) },
    log: { info: () => {} } as never,
  });
  return { events, repaired, swept, relisted, actual, audit, garbage, store };
}

/**
 * Creates one workspace of a leading controller: caches that a test fills, the real workers with a real Redis, audit,
 * and sweep. Enqueued work runs when the test starts it.
 */
export async function createAuditedTenant(client: RedisClient, options: AuditedTenantOptions = {}) {
  const name = options.name ?? `t${randomUUID().replaceAll('-', '').slice(0, 12)}`;
  const partner = `${name}-partner`;
  const calls: string[] = [];
  const redis = recording(client, calls);
  const clock = { ms: NOW_MS };
  const fence = { epoch: 1 };
  const { caches, stores, put, remove } = createTestCaches();
  const fenced = createControlRecord(redis);
  const record = options.clusterIsOwn ? fenced : withSharedCluster(redis, fenced);
  const nowMs = () => clock.ms;
  const control = createPartsControl(redis, record, nowMs);
  const basis: Basis = {
    tenant: options.clusterIsOwn ? undefined : tenantId(name),
    redis,
    caches,
    control,
    nowMs,
    fence: () => fence.epoch,
  };
  const workers = createWorkers(basis, options.sealEndpoint ?? ((sub, { url }) => `${sub} ${url}`));
  const auditors = createAuditors(basis, workers);
  const { tenants, queue } = workers;
  const work = () => workers.work();
  const objects = objectsOfTenant(name, partner);
  const listed = (): Promise<ReadonlySet<string>> => auditors.store.readTenants();
  const activation = (groupKey: string, spec: object = {}): AnyObject => activationOf(name, groupKey, spec);

  async function look(): Promise<Difference[]> {
    return auditors.audit.compareTenant(name, await listed());
  }

  return {
    ...auditors,
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
    put,
    remove,
    listed,
    look,
    work,
    /** Runs the worker for the pair of an activation after `failures` failed attempts. */
    reconcilePair: workers.pair,
    activation,
    objects,
    /** Fills the caches and applies everything. */
    async begin(groupKeys: readonly string[]): Promise<void> {
      put('Account', objects.account);
      put('Workspace', objects.workspace);
      stores.namespaces.set(name, { workspace: name, deleting: false });
      stores.ingressKeys.set(`${name}/key`, { namespace: name, sha256: 'ab'.repeat(32) });
      put('CatalogStream', objects.stream);
      put('Integration', objects.integration);
      put('Subscription', objects.subscription);
      for (const groupKey of groupKeys) put('Activation', activation(groupKey));
      queue.tenants.add(name);
      queue.accounts.add(name);
      await work();
    },
    /** Runs both comparisons of the workspace and its account, then the workers. */
    async pass(): Promise<void> {
      const [found, accounts] = [await look(), await auditors.audit.compareAccounts([name])];
      await auditors.audit.repair({ tenants: new Map([[name, found]]), accounts }, await listed());
      await work();
    },
  };
}

export type AuditedTenant = Awaited<ReturnType<typeof createAuditedTenant>>;
