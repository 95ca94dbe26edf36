import type { IntegrationSnapshot } from './snapshot.ts';

export type IntegrationState = 'Pending' | 'Active' | 'Declined' | 'Expired' | 'Revoked';

/** Returns the integration state: the first of Revoked, Declined, Active, Expired, and Pending that applies. */
export function integrationState(
  integration: Pick<IntegrationSnapshot, 'spec' | 'expiresMs'>,
  nowMs: number,
): IntegrationState {
  const { spec, expiresMs } = integration;
  if (spec.revoked === true) return 'Revoked';
  if (spec.declined === true) return 'Declined';
  if (spec.workspace !== undefined) return 'Active';
  if (expiresMs !== undefined && expiresMs <= nowMs) return 'Expired';
  return 'Pending';
}

/** Returns the state of an Integration object at `nowMs` (using the wall clock). */
export function integrationStatus(
  {
    spec,
    status,
  }: Pick<IntegrationSnapshot, 'spec'> & {
    readonly status?: { readonly invitation?: { readonly expiresAt?: string | undefined } | undefined } | undefined;
  },
  nowMs: number,
): IntegrationState {
  const expiresAt = status?.invitation?.expiresAt;
  return integrationState({ spec, ...(expiresAt === undefined ? {} : { expiresMs: Date.parse(expiresAt) }) }, nowMs);
}

/** Returns the same state in the format used for routes. */
export function routeState(state: IntegrationState): 'pending' | 'active' | 'closed' {
  if (state === 'Active') return 'active';
  return state === 'Pending' ? 'pending' : 'closed';
}
