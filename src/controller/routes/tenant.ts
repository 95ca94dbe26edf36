import type { CompiledTenant } from '../../core/routing/compile-routes.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { Steps } from '../../core/routing/steps.ts';
import type { StoredRoutes } from '../../record/control-plan.ts';
import type { Clock } from '../../time/clock.ts';
import type { Closing } from './closing.ts';
import { createExclusiveRuns, type ExclusiveRuns } from './exclusive-runs.ts';

/** The tenant routes known to this leader. */
export interface Tenant {
  readonly name: string;
  readonly runs: ExclusiveRuns;
  /** Routes written to Redis by this leader. If undefined, the routes need to be read again. */
  stored: StoredRoutes | undefined;
  /**
   * True if changes of routes that were known are being written. Everything that was applied before is still applied.
   */
  isWriting: boolean;
  /** The last routes known to be in Redis. All names in these routes will be read even if Redis has lost the index. */
  remembered: TenantRoutes | undefined;
  compiled: CompiledTenant | undefined;
  /** The versions of all objects used to compile the routes. */
  seen: ReadonlySet<string>;
  /**
   * The routes that were closed during the pause, or while the routes could not be compiled. Undefined if they have been
   * compiled since, or if the data in Redis has not been read yet.
   */
  closing: Closing | undefined;
  /** The number of times that the routes in Redis have been marked as unknown. A run must not undo this. */
  forgotten: number;
  /** True if the last run has failed. In this case, the routes may not have been applied. */
  failed: boolean;
}

export function createTenant(name: string, clock: Pick<Clock, 'nowMs' | 'setTimer'>): Tenant {
  return {
    name,
    runs: createExclusiveRuns(clock),
    stored: undefined,
    isWriting: false,
    remembered: undefined,
    compiled: undefined,
    seen: new Set(),
    closing: undefined,
    forgotten: 0,
    failed: false,
  };
}

/** Marks the tenant routes in Redis as unknown. */
export function forgetStored(tenant: Tenant): void {
  tenant.forgotten++;
  tenant.stored = undefined;
  tenant.isWriting = false;
  tenant.closing = undefined;
}

/** Returns true unless the routes need to be read from Redis. */
export function isKnown({ stored, isWriting }: Tenant): boolean {
  return stored !== undefined || isWriting;
}

/** Returns true if there are no routes for this tenant. */
export function isEmpty({ payer, queues, integrations }: TenantRoutes): boolean {
  return payer === '' && Object.keys(queues).length === 0 && Object.keys(integrations).length === 0;
}

/** Returns the UIDs of all Subscriptions and Blocks whose routes have changed. */
export function* changedObjects(had: CompiledTenant, has: CompiledTenant): Steps<Set<string>> {
  const changed = new Set<string>();
  for (const [uid, verdict] of has.verdicts) {
    const before = had.verdicts.get(uid);
    const same = (['ready', 'live', 'detail', 'about'] as const).every(part => before?.[part] === verdict[part]);
    if (!same) changed.add(uid);
    yield;
  }
  for (const uid of new Set([...had.paused.keys(), ...has.paused.keys()])) {
    if (had.paused.get(uid) !== has.paused.get(uid)) changed.add(uid);
    yield;
  }
  return changed;
}
