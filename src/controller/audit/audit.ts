import { publicId, tenantId } from '../../core/ids/ids.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { ControlAudit } from '../../redis/control-audit.ts';
import { planRoutes } from '../../redis/control-plan.ts';
import type { TenantReading } from '../../redis/control-reader.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Cached, type Caches, pairKey, resourceOf } from '../caches/caches.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';
import { isOpen } from '../kinds/activation/reconcile.ts';
import { isEmpty } from '../routes/tenant.ts';
import type { Tenants } from '../routes/tenants.ts';
import type { AuditMetrics } from './audit-metrics.ts';
import { type Difference, differencesOfPlan, inBoth } from './drift.ts';
import { compareGates } from './gate-comparison.ts';

export interface AuditDeps {
  readonly caches: Pick<Caches, 'Account' | 'Workspace' | 'Integration' | 'Activation'>;
  readonly store: Omit<ControlAudit, 'readTenants'>;
  readonly tenants: Pick<Tenants, 'stored' | 'isCurrent' | 'forget'>;
  readonly isPaused: (tenant: string) => boolean;
  /** Enqueue a tenant, a pair or an account: only their workers write. */
  readonly enqueueTenant: (name: string) => void;
  readonly enqueuePair: (key: string) => void;
  readonly enqueueAccount: (name: string) => void;
  readonly isPairPending: (key: string) => boolean;
  readonly isAccountPending: (name: string) => boolean;
  /** Lists from the quorum again: all objects of routes and accounts, or the activations. */
  readonly relist: (what: 'routes' | 'activations') => Promise<void>;
  /** Reads the pair's objects from the quorum. */
  readonly readPair: (
    namespace: string,
    integration: string,
    groupKey: string,
  ) => Promise<readonly Cached<'Activation'>[]>;
  /** Notes the endpoint health of these subscriptions (`sub_…`). Endpoints that work have no text. */
  readonly noteHealths: (subs: Iterable<string>, texts: ReadonlyMap<string, string>) => void;
  /** Notes the state of deliveries, by `sub_…`. */
  readonly noteDeliveries: (found: TenantReading['deliveries']) => void;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: Pick<AuditMetrics, 'repaired'>;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'warn'>;
}

/** Maximum number of pairs to read one by one. For more, everything is listed. */
const MOST_PAIRS_ASKED = 20;

/**
 * Compares Redis with the last written state, and enqueues the repair of differences. It writes nothing itself. A
 * difference counts only at a second look with caches that match the quorum: a stale cache would remove what exists.
 */
export function createAudit(deps: AuditDeps) {
  const { caches, store, tenants } = deps;

  /** Returns the differences of a tenant. @param listed tenants that are listed as having control state */
  async function lookAtTenant(name: string, listed: ReadonlySet<string>): Promise<Difference[]> {
    const stored = tenants.stored(name);
    // Not known: a worker is processing or retrying it.
    if (stored === undefined || deps.isPaused(name) || isEmpty(stored.routes)) return [];
    if (!tenants.isCurrent(name)) {
      deps.enqueueTenant(name);
      return [];
    }
    const { stored: found, healths, deliveries } = await store.readRoutes(tenantId(name), [stored.routes]);
    for (const { subscriptions } of Object.values(found.routes.integrations)) {
      deps.noteHealths(Object.keys(subscriptions), healths);
    }
    deps.noteDeliveries(deliveries);
    const gates = await compareGates({ caches, store, isPending: deps.isPairPending }, name, stored.routes);
    if (tenants.stored(name) !== stored) return [];
    const differences = [...differencesOfPlan(planRoutes(found, stored.routes, deps.nowMs())), ...gates];
    if (!listed.has(tenantId(name))) differences.push({ id: 'membership', what: 'membership', removes: false });
    return differences;
  }

  /** Returns the accounts that differ, with their differences. */
  async function lookAtAccounts(names: readonly string[]): Promise<Map<string, Difference[]>> {
    const found = await store.readAccounts(names.map(name => publicId('Account', '', name)));
    const differences = new Map<string, Difference[]>();
    for (const [i, name] of names.entries()) {
      const spec = caches.Account.store.get(name)?.spec;
      const has = found[i];
      if (spec === undefined || (has?.plan === spec.plan && has.included === String(spec.includedTokens))) continue;
      if (deps.isAccountPending(name)) continue;
      const id = `${has?.plan} ${has?.included} ${spec.plan} ${spec.includedTokens}`;
      differences.set(name, [{ id, what: 'account', removes: false }]);
    }
    return differences;
  }

  /** Returns the differences without those from stale caches. Lists stale caches again. */
  async function withoutStale(name: string, differences: readonly Difference[]): Promise<Difference[]> {
    const removing = differences.filter(({ removes }) => removes);
    const pairs = removing.flatMap(({ pair }) => pair ?? []);
    let stale = pairs.length < removing.length || pairs.length > MOST_PAIRS_ASKED;
    if (!stale) {
      const actual = await Promise.all(
        pairs.map(({ integration, groupKey }) => deps.readPair(name, integration, groupKey)),
      );
      stale = actual.some(isOpen);
    }
    if (!stale) return [...differences];
    await deps.relist('activations');
    return differences.filter(({ removes, pair }) => {
      if (!removes || pair === undefined) return true;
      return !isOpen(caches.Activation.store.byIndex('pair', pairKey(name, pair.integration, pair.groupKey)));
    });
  }

  function tell(
    name: string,
    object: AnyObject | undefined,
    kind: 'Workspace' | 'Account',
    found: readonly Difference[],
  ): void {
    const what = [...new Set(found.map(each => each.what))].toSorted();
    for (const each of found) deps.metrics.repaired(each.what);
    deps.log.warn(
      { [kind.toLowerCase()]: name, what, differences: found.length },
      'redis was not as written, repaired',
    );
    if (object === undefined) return;
    const message = `Redis differed from the last written state; rewrote: ${what.join(', ')}`;
    deps.events.record(
      { resource: resourceOf(kind), metadata: object.metadata },
      { type: 'Warning', reason: 'DriftRepaired', message },
    );
  }

  async function mendTenant(
    name: string,
    first: readonly Difference[],
    listed: ReadonlySet<string>,
    freshen: () => Promise<void>,
  ): Promise<void> {
    const second = await lookAtTenant(name, listed);
    if (inBoth(first, second).length === 0) return;
    const stored = tenants.stored(name);
    await freshen();
    // Check all removals: rewriting the routes also makes the activations match the caches.
    const certain = inBoth(first, await withoutStale(name, second));
    if (certain.length === 0 || tenants.stored(name) !== stored || !tenants.isCurrent(name)) return;
    if (certain.some(({ pair }) => pair === undefined)) {
      tenants.forget([name]);
      deps.enqueueTenant(name);
    }
    for (const { pair } of certain) {
      if (pair !== undefined) deps.enqueuePair(pairKey(name, pair.integration, pair.groupKey));
    }
    tell(name, caches.Workspace.store.get(name), 'Workspace', certain);
  }

  return {
    lookAtTenant,
    lookAtAccounts,
    /** Takes a second look at suspects, and repairs what it finds again. */
    async mend(
      suspects: {
        readonly tenants: ReadonlyMap<string, readonly Difference[]>;
        readonly accounts: ReadonlyMap<string, readonly Difference[]>;
      },
      listed: ReadonlySet<string>,
    ): Promise<void> {
      let fresh: Promise<void> | undefined;
      // One relist for all of them.
      const freshen = (): Promise<void> => (fresh ??= deps.relist('routes'));
      for (const [name, first] of suspects.tenants) await mendTenant(name, first, listed, freshen);
      for (const [name, first] of suspects.accounts) {
        const second = (await lookAtAccounts([name])).get(name) ?? [];
        if (inBoth(first, second).length === 0) continue;
        await freshen();
        // The caches may have been wrong.
        const certain = inBoth(first, (await lookAtAccounts([name])).get(name) ?? []);
        if (certain.length === 0) continue;
        deps.enqueueAccount(name);
        tell(name, caches.Account.store.get(name), 'Account', certain);
      }
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;
