import { publicId } from '../ids/ids.ts';
import { type LimitPolicy, limitsOf } from '../limits/limits.ts';
import type { TenantRoutes } from './routes.ts';
import type { TenantSnapshot } from './snapshot.ts';

/**
 * Returns the paying account, its plan, and its ingress limits. Without a workspace, the account and the plan are
 * empty.
 */
export function payerOf(
  { workspace, account }: TenantSnapshot,
  limits: LimitPolicy | undefined,
): Pick<TenantRoutes, 'payer' | 'plan' | 'eventsPerSecond' | 'storedBytes'> {
  if (workspace === undefined) return { payer: '', plan: '' };
  // If the account is missing, we need to close the gate. Parts don't get any tokens without a plan, even if Redis
  // still contains the balance of a deleted account.
  const plan = account?.plan ?? '';
  const paying = { payer: publicId('Account', '', workspace.spec.account), plan };
  if (limits === undefined) return paying;
  const { eventsPerSecond, storedBytes } = limitsOf({ ...account, plan: plan || 'Free' }, limits);
  return {
    ...paying,
    ...(eventsPerSecond === undefined ? {} : { eventsPerSecond }),
    ...(storedBytes === undefined ? {} : { storedBytes }),
  };
}
