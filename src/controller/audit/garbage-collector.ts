import { tenantId } from '../../core/ids/ids.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { ControlAudit } from '../../redis/control-audit.ts';
import { type PatchOp, planRoutes } from '../../redis/control-plan.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { ControlSweep } from '../../redis/control-sweep.ts';
import { CLUSTER_KEYS, integrationKeys, tenantKeys } from '../../redis/keys.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Caches } from '../caches/caches.ts';
import type { Tenants } from '../routes/tenants.ts';
import type { AuditMetrics, Swept } from './audit-metrics.ts';
import { findOrphans, namesOf, OWNS_NOTHING, type Owned, ownedBy } from './orphans.ts';

export interface GarbageCollectorDeps {
  readonly caches: Pick<Caches, 'Workspace' | 'CatalogStream' | 'Integration' | 'Subscription'>;
  readonly tenants: Pick<Tenants, 'names' | 'between' | 'prune'>;
  readonly store: Pick<ControlAudit, 'readIndexes' | 'readRoutes' | 'probe'>;
  readonly control: Pick<ControlStore, 'patch' | 'readTenant'>;
  readonly purger: ControlSweep;
  readonly isPaused: (tenant: string) => boolean;
  readonly fence: () => number;
  /** Lists from the quorum again all objects that own something. */
  readonly relist: (what: 'routes') => Promise<void>;
  readonly enqueueTenant: (name: string) => void;
  readonly metrics: Pick<AuditMetrics, 'swept'>;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'info'>;
}

/** A tenant with orphans. */
interface Suspect {
  /** `ten_…` */
  readonly tenant: string;
  /** Undefined: no object refers to it. */
  readonly name: string | undefined;
  readonly owned: Owned;
}

/** Maximum number of tenants in one pass. */
const MOST_TENANTS = 50;

function nothingOf(tenant: string): TenantRoutes {
  return { tenant, payer: '', plan: '', keys: {}, queues: {}, integrations: {} };
}

/**
 * Removes orphans from Redis: data of objects that were deleted without cleanup, because their finalizer was removed
 * during an outage or because they have none. Never removes a queue with undelivered events, nor an inbox within its
 * retention. An orphan counts at the second pass that finds it, with caches that match the quorum.
 */
export function createGarbageCollector(deps: GarbageCollectorDeps) {
  const { caches, tenants, store, control, purger } = deps;
  /** Orphans of the last pass, by tenant. */
  let seen = new Map<string, ReadonlySet<string>>();

  /** Returns `ten_…` → name of every workspace that exists, has objects, or is named by one. */
  function namesById(): Map<string, string> {
    const names = new Set(tenants.names());
    for (const { metadata } of caches.Workspace.store.values()) names.add(metadata.name);
    for (const kind of ['CatalogStream', 'Integration'] as const) {
      for (const { metadata } of caches[kind].store.values()) names.add(metadata.namespace ?? '');
    }
    for (const { spec } of caches.Subscription.store.values()) names.add(spec.producer);
    return new Map([...names].map(name => [tenantId(name), name]));
  }

  function suspectOf(tenant: string, names: ReadonlyMap<string, string>): Suspect {
    const name = names.get(tenant);
    return { tenant, name, owned: name === undefined ? OWNS_NOTHING : ownedBy(caches, name) };
  }

  /** Returns the tenants with an orphan that the last pass found, too. */
  async function findSuspects(listed: ReadonlySet<string>): Promise<string[]> {
    const names = namesById();
    const found = new Map<string, ReadonlySet<string>>();
    const again: string[] = [];
    for (const [tenant, index] of await store.readIndexes([...listed])) {
      const { name, owned } = suspectOf(tenant, names);
      if (name !== undefined && deps.isPaused(name)) continue;
      const left = namesOf(findOrphans(index, nothingOf(tenant), owned));
      if (left.length === 0) continue;
      found.set(tenant, new Set(left));
      if (left.some(each => seen.get(tenant)?.has(each))) again.push(tenant);
    }
    seen = found;
    return again.slice(0, MOST_TENANTS);
  }

  /** Closes the routes of a tenant without a name, which has no worker. */
  async function close(tenant: string): Promise<void> {
    const fence = deps.fence();
    const stored = await control.readTenant(tenant, fence);
    await control.patch(fence, planRoutes(stored, nothingOf(tenant), deps.nowMs()).patches);
    const integrations = Object.keys(stored.routes.integrations);
    const sizes = await store.probe([
      { tenant, gates: [] },
      ...integrations.map(integration => ({ integration, groupKeys: [] })),
    ]);
    const t = tenantKeys(tenant);
    const slots = [{ meta: t.meta, key: t.gates }];
    for (const integration of integrations) {
      const i = integrationKeys(integration);
      slots.push({ meta: i.meta, key: i.act });
    }
    const full = slots.filter((_slot, at) => (sizes[at]?.size ?? 0) > 0);
    await control.patch(
      fence,
      full.map(({ meta, key }) => ({ meta, ops: [{ command: 'UNLINK' as const, key, args: [] }] })),
    );
  }

  /** Removes the orphans of a tenant. @param look only counts them @returns how many were removed */
  async function clear({ tenant, name, owned }: Suspect, fence: number, look: boolean): Promise<number> {
    const nowMs = deps.nowMs();
    const t = tenantKeys(tenant);
    const { routes, hashes } = (await store.readRoutes(tenant, [])).stored;
    const index = { ...hashes?.get(t.index) };
    const left = findOrphans(index, routes, owned);
    const ops: PatchOp[] = [];
    let gone = 0;
    const note = (what: Swept, entry?: string): void => {
      gone++;
      if (entry !== undefined) delete index[entry];
      if (look) return;
      if (entry !== undefined) ops.push({ command: 'HDEL', key: t.index, args: [entry] });
      deps.metrics.swept(what);
      deps.log.info({ tenant: name ?? tenant, what, entry }, 'removed an orphan');
    };

    for (const inbox of left.inboxes) {
      if (await purger.purgeInbox(fence, inbox, nowMs, inbox.retentionMs, look)) {
        note('inbox', `s:${inbox.integration}:${inbox.sub}`);
      }
    }
    for (const { queue, gen } of left.queues) {
      const isOpen = await hasOpen(routes, index, queue, gen);
      if (!(await purger.purgeQueue(fence, { tenant, queue, gen, isOpen }, nowMs, look))) continue;
      note('queue', `q:${queue}`);
      if (!look) ops.push({ command: 'UNLINK', key: t.subs(queue), args: [] });
    }
    for (const integration of left.integrations) {
      if (Object.keys(index).some(entry => entry.startsWith(`s:${integration}:`))) continue;
      if (await purger.purgeIntegration(fence, integration, nowMs, look)) note('integration', `i:${integration}`);
    }
    if (ops.length > 0) await control.patch(fence, [{ meta: t.meta, ops }]);
    // With `look`, the index still has the entries that would be removed.
    if (!left.tenant || Object.keys(index).length > 0) return gone;
    if (!look && (await purger.purgeTenant(fence, tenant, nowMs, look))) {
      const delist: PatchOp = { command: 'SREM', key: CLUSTER_KEYS.tenants, args: [tenant] };
      await control.patch(fence, [{ meta: CLUSTER_KEYS.meta, ops: [delist] }]);
      note('tenant');
    }
    return look ? gone + 1 : gone;
  }

  /** Returns whether an inbox that stays has open references to events of the queue. */
  async function hasOpen(
    routes: TenantRoutes,
    index: Readonly<Record<string, string>>,
    queue: string,
    gen: string,
  ): Promise<boolean> {
    for (const [integration, { subscriptions }] of Object.entries(routes.integrations)) {
      for (const [sub, route] of Object.entries(subscriptions)) {
        if (route.queue !== queue || route.gen !== gen || !(`s:${integration}:${sub}` in index)) continue;
        if ((await purger.countOpen({ integration, sub, inc: route.inc })) > 0) return true;
      }
    }
    return false;
  }

  async function collect(suspect: Suspect): Promise<void> {
    if (suspect.name === undefined) await close(suspect.tenant);
    if ((await clear(suspect, deps.fence(), true)) === 0) return;
    if (suspect.name === undefined) {
      await clear(suspect, deps.fence(), false);
      return;
    }
    await tenants.between(suspect.name, async fence => {
      await clear(suspect, fence, false);
    });
    deps.enqueueTenant(suspect.name);
  }

  /** Returns the UIDs of objects that may still be reconciled. */
  function knownUids(): Set<string> {
    const uids = new Set<string>();
    for (const kind of ['CatalogStream', 'Subscription'] as const) {
      for (const { metadata } of caches[kind].store.values()) uids.add(metadata.uid);
    }
    return uids;
  }

  return {
    /** Forgets what the last pass found, at the start of a term. */
    forget: (): void => {
      seen = new Map();
    },
    /** Runs one pass over the tenants that are listed as having control state. */
    async pass(listed: ReadonlySet<string>): Promise<void> {
      const uids = knownUids();
      for (const name of tenants.prune(uid => uids.has(uid))) {
        // A Subscription may have named anything.
        if (!listed.has(tenantId(name))) await purger.purgeTenant(deps.fence(), tenantId(name), deps.nowMs(), false);
      }
      const again = await findSuspects(listed);
      if (again.length === 0) return;
      await deps.relist('routes');
      const names = namesById();
      for (const tenant of again) await collect(suspectOf(tenant, names));
    },
  };
}

export type GarbageCollector = ReturnType<typeof createGarbageCollector>;
