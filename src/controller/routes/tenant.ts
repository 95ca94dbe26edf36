import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { StoredRoutes } from '../../record/control-plan.ts';
import type { Closing } from './closing.ts';
import { createExclusiveRuns, type ExclusiveRuns } from './exclusive-runs.ts';

/** A tenant's routes, as known to this leader. */
export interface Tenant {
  readonly name: string;
  readonly runs: ExclusiveRuns;
  /** Routes written to Redis by this leader. If undefined, they must be read again. */
  stored: StoredRoutes | undefined;
  /** Last known routes in Redis. Names in these routes are read even if Redis has lost the index. */
  remembered: TenantRoutes | undefined;
  compiled: CompiledTenant | undefined;
  /** Versions of all objects used to compile the routes. */
  seen: ReadonlySet<string>;
  /** Routes closed during the pause. Undefined if the workspace isn't paused or Redis has yet to be read. */
  closing: Closing | undefined;
  /** Whether the last run failed, meaning that the routes might not have been applied. */
  failed: boolean;
}

export function createTenant(name: string): Tenant {
  return {
    name,
    runs: createExclusiveRuns(),
    stored: undefined,
    remembered: undefined,
    compiled: undefined,
    seen: new Set(),
    closing: undefined,
    failed: false,
  };
}

/** Marks the tenant's routes in Redis as unknown. */
export function forgetStored(tenant: Tenant): void {
  tenant.stored = undefined;
  tenant.closing = undefined;
}

/** A Subscription, whose endpoint needs the salt. */
type Salted = AnyObject & { readonly status?: { readonly signing?: { readonly salt?: string } } };

/**
 * Returns an object's version, which changes with its spec, deletion timestamp, and finalizers, and when a Subscription
 * gets its salt.
 */
export function versionOf(object: AnyObject): string {
  const { uid, generation, deletionTimestamp, finalizers } = object.metadata;
  const salt = (object as Salted).status?.signing?.salt === undefined ? '' : '+';
  return `${uid}@${generation ?? 0}${deletionTimestamp === undefined ? '' : '-'}${finalizers?.length ?? 0}${salt}`;
}

/** Returns true if there are no routes. */
export function isEmpty({ payer, queues, integrations }: TenantRoutes): boolean {
  return payer === '' && Object.keys(queues).length === 0 && Object.keys(integrations).length === 0;
}

/** Returns the UIDs of Subscriptions and Blocks whose routes have changed. */
export function changedObjects(had: CompiledTenant, has: CompiledTenant): Set<string> {
  const changed = new Set<string>();
  for (const [uid, verdict] of has.verdicts) {
    const before = had.verdicts.get(uid);
    const same = (['ready', 'live', 'detail', 'about'] as const).every(part => before?.[part] === verdict[part]);
    if (!same) changed.add(uid);
  }
  for (const uid of new Set([...had.paused.keys(), ...has.paused.keys()])) {
    if (had.paused.get(uid) !== has.paused.get(uid)) changed.add(uid);
  }
  return changed;
}
