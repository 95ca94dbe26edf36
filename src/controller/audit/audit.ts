import type { AnyObject } from '../../kube/object.ts';
import { resourceOf } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import { pairKey } from '../caches/caches.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';
import type { Tenants } from '../routes/tenants.ts';
import type { AuditMetrics } from './audit-metrics.ts';
import { type ComparisonDeps, compareAccounts, compareTenant } from './comparison.ts';
import { type Difference, inBoth } from './drift.ts';
import { type StaleCachesDeps, withoutStale } from './stale-caches.ts';

export interface AuditDeps extends ComparisonDeps, Pick<StaleCachesDeps, 'relist' | 'readPair'> {
  readonly tenants: ComparisonDeps['tenants'] & Pick<Tenants, 'forget'>;
  /** Enqueues a pair. The audit itself writes nothing: only the workers do. */
  readonly enqueuePair: (key: string) => void;
  readonly enqueueAccount: (name: string) => void;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: Pick<AuditMetrics, 'repaired'>;
  readonly log: Pick<Logger, 'warn'>;
}

type Differences = ReadonlyMap<string, readonly Difference[]>;

/**
 * Compares the data in Redis with the last written state. If there is a difference, a repair is enqueued. The audit
 * itself will not write anything to Redis. A difference is only repaired after it was confirmed by a second comparison
 * with caches that match the quorum. With only one comparison, a stale cache could cause valid data to be removed.
 */
export function createAudit(deps: AuditDeps) {
  const { caches, tenants } = deps;
  const ofAccount = async (name: string) => (await compareAccounts(deps, [name])).get(name) ?? [];

  async function repairTenant(
    name: string,
    first: readonly Difference[],
    listed: ReadonlySet<string>,
    refresh: () => Promise<void>,
  ): Promise<void> {
    const second = await compareTenant(deps, name, listed);
    if (inBoth(first, second).length === 0) return;
    const stored = tenants.stored(name);
    await refresh();
    // Check every removal here because writing the routes would also remove activations which are missing from the
    // caches.
    const certain = inBoth(first, await withoutStale(deps, name, second));
    if (certain.length === 0 || tenants.stored(name) !== stored || !(await tenants.isCurrent(name))) return;
    // The objects may have changed in the meantime.
    if (tenants.stored(name) !== stored) return;
    if (certain.some(({ pair, inPart }) => pair === undefined || inPart)) {
      tenants.forget([name]);
      deps.enqueueTenant(name);
    }
    for (const { pair, inPart } of certain) {
      if (pair !== undefined && !inPart) deps.enqueuePair(pairKey(name, pair.integration, pair.groupKey));
    }
    reportRepair(deps, { kind: 'Workspace', name, object: caches.Workspace.store.get(name) }, certain);
  }

  async function repairAccount(
    name: string,
    first: readonly Difference[],
    refresh: () => Promise<void>,
  ): Promise<void> {
    if (inBoth(first, await ofAccount(name)).length === 0) return;
    await refresh();
    // The first two comparisons may have used stale caches, so we compare the account a third time.
    const certain = inBoth(first, await ofAccount(name));
    if (certain.length === 0) return;
    deps.enqueueAccount(name);
    reportRepair(deps, { kind: 'Account', name, object: caches.Account.store.get(name) }, certain);
  }

  return {
    compareTenant: (name: string, listed: ReadonlySet<string>) => compareTenant(deps, name, listed),
    compareAccounts: (names: readonly string[]) => compareAccounts(deps, names),
    /** Compares the suspects again. If a suspect is still different, it is repaired. */
    async repair(
      suspects: { readonly tenants: Differences; readonly accounts: Differences },
      listed: ReadonlySet<string>,
    ): Promise<void> {
      let refreshed: Promise<void> | undefined;
      // Refresh the caches at most once for all suspects.
      const refresh = (): Promise<void> => (refreshed ??= deps.relist('routes'));
      for (const [name, first] of suspects.tenants) await repairTenant(name, first, listed, refresh);
      for (const [name, first] of suspects.accounts) await repairAccount(name, first, refresh);
    },
  };
}

export type Audit = ReturnType<typeof createAudit>;

/** Updates the metrics, logs the repair, and records an Event for the repaired object. */
function reportRepair(
  deps: Pick<AuditDeps, 'metrics' | 'log' | 'events'>,
  of: { readonly kind: 'Workspace' | 'Account'; readonly name: string; readonly object: AnyObject | undefined },
  found: readonly Difference[],
): void {
  const what = [...new Set(found.map(each => each.what))].toSorted();
  for (const each of found) deps.metrics.repaired(each.what);
  deps.log.warn(
    { [of.kind.toLowerCase()]: of.name, what, differences: found.length },
    'Redis differed from the objects and has been repaired',
  );
  if (of.object === undefined) return;
  const message = `Redis was different from the last written state. The controller rewrote ${what.join(', ')}`;
  deps.events.record(
    { resource: resourceOf(of.kind), metadata: of.object.metadata },
    { type: 'Warning', reason: 'DriftRepaired', message },
  );
}
