import { publicId, tenantId } from '../../core/ids/ids.ts';
import type { StateAudit, SubscriptionState } from '../../record/control-audit.ts';
import { planSteps } from '../../record/control-plan.ts';
import { inSlices } from '../../time/slices.ts';
import type { Caches } from '../caches/caches.ts';
import type { FoundDelivery } from '../kinds/subscription/delivery-status/delivery-watch.ts';
import { isEmpty } from '../routes/tenant.ts';
import type { Tenants } from '../routes/tenants.ts';
import { type Difference, differencesOfPlan } from './drift.ts';
import { compareGates } from './gate-comparison.ts';
import { compareParts } from './part-comparison.ts';

export interface ComparisonDeps {
  readonly caches: Pick<Caches, 'Account' | 'Workspace' | 'Integration' | 'Activation'>;
  readonly store: Omit<StateAudit, 'readTenants'>;
  readonly tenants: Pick<Tenants, 'stored' | 'isCurrent'>;
  readonly isPaused: (tenant: string) => boolean;
  readonly enqueueTenant: (name: string) => void;
  readonly isPairPending: (key: string) => boolean;
  readonly isAccountPending: (name: string) => boolean;
  /**
   * Records endpoint health for the given subscriptions (`sub_…`). The endpoint of a subscription without any text is
   * working.
   */
  readonly noteHealths: (subs: Iterable<string>, texts: ReadonlyMap<string, string>) => void;
  /** Records the delivery state for each subscription id (`sub_…`). */
  readonly noteDeliveries: (found: ReadonlyMap<string, FoundDelivery>) => void;
}

/** Forwards the subscription data that was read from the parts. */
function noteStates(
  { noteHealths, noteDeliveries }: ComparisonDeps,
  states: ReadonlyMap<string, SubscriptionState>,
): void {
  const healths = new Map<string, string>();
  const deliveries = new Map<string, FoundDelivery>();
  for (const [sub, state] of states) {
    if (state.health !== undefined) healths.set(sub, state.health);
    deliveries.set(sub, { ...state.deliveries, inc: state.inc });
  }
  noteHealths(states.keys(), healths);
  noteDeliveries(deliveries);
}

/** Returns all of the differences for a tenant. @param listed the tenants that have control state in Redis */
export async function compareTenant(
  deps: ComparisonDeps,
  name: string,
  listed: ReadonlySet<string>,
): Promise<Difference[]> {
  const { caches, store, tenants } = deps;
  const stored = tenants.stored(name);
  // We can't know the state while a worker is processing or retrying the tenant.
  if (stored === undefined || deps.isPaused(name) || isEmpty(stored.routes)) return [];
  if (!(await tenants.isCurrent(name))) {
    // If the routes have been applied in the meantime, they are compared next time.
    if (tenants.stored(name) === stored) deps.enqueueTenant(name);
    return [];
  }
  const { stored: found } = await store.readRoutes(tenantId(name), [stored.routes]);
  noteStates(deps, await store.parts.readStates(stored.routes));
  const gates = await compareGates({ caches, store, isPending: deps.isPairPending }, name, stored.routes);
  const parts = await compareParts({ caches, parts: store.parts, isPending: deps.isPairPending }, name, stored.routes);
  const plan = await inSlices(planSteps(found, stored.routes));
  if (tenants.stored(name) !== stored) return [];
  const differences = [...parts, ...differencesOfPlan(plan), ...gates];
  if (!listed.has(tenantId(name))) differences.push({ id: 'membership', what: 'membership', removes: false });
  return differences;
}

/** Returns the differences for each account. Accounts without differences are not included. */
export async function compareAccounts(
  { caches, store, isAccountPending }: ComparisonDeps,
  names: readonly string[],
): Promise<Map<string, Difference[]>> {
  const found = await store.readAccounts(names.map(name => publicId('Account', '', name)));
  const differences = new Map<string, Difference[]>();
  for (const [i, name] of names.entries()) {
    const spec = caches.Account.store.get(name)?.spec;
    const has = found[i];
    if (spec === undefined || (has?.plan === spec.plan && has.included === String(spec.includedTokens))) continue;
    if (isAccountPending(name)) continue;
    const id = `${has?.plan} ${has?.included} ${spec.plan} ${spec.includedTokens}`;
    differences.set(name, [{ id, what: 'account', removes: false }]);
  }
  return differences;
}
