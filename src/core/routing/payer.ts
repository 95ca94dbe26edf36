import { publicId } from '../ids/ids.ts';
import { type LimitPolicy, limitsOf } from '../limits/limits.ts';
import type { TenantRoutes } from './routes.ts';
import type { TenantSnapshot } from './snapshot.ts';

/** Returns who pays, its plan, and its limits for ingress. Payer and plan are empty without a workspace. */
export function payerOf(
  { workspace, account }: TenantSnapshot,
  limits: LimitPolicy | undefined,
): Pick<TenantRoutes, 'payer' | 'plan' | 'eventsPerSecond' | 'storedBytes'> {
  if (workspace === undefined) return { payer: '', plan: '' };
  // Closes the gate when the account is missing: parts ask for tokens from an account that doesn't exist in
  // Redis, and are held back.
  const paying = { payer: publicId('Account', '', workspace.spec.account), plan: account?.plan ?? 'Free' };
  if (limits === undefined) return paying;
  const { eventsPerSecond, storedBytes } = limitsOf(account ?? { plan: 'Free' }, limits);
  return {
    ...paying,
    ...(eventsPerSecond === undefined ? {} : { eventsPerSecond }),
    ...(storedBytes === undefined ? {} : { storedBytes }),
  };
}
