import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { AccountStatus } from '../../../api/kinds/account.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { LimitLevels } from '../../../core/limits/limit-levels.ts';
import type { Limits } from '../../../core/limits/limits.ts';
import type { DesiredCondition } from '../../engine/conditions.ts';
import type { Finalization, Outcome } from '../../engine/outcome.ts';
import { nameSome } from '../named-objects.ts';

const condition = CONDITION.Account;
const reason = REASON.Account;

/**
 * Returns the LimitReached condition. The condition is added when an account is close to a limit and is kept after
 * that. No other account has this condition. The message contains the names of the limits, but not their usage. As a
 * result, it is only written if a level has changed.
 */
function limitReached({ reached, near }: LimitLevels, wasSet: boolean): DesiredCondition[] {
  const type = condition.LimitReached;
  const { AtLimit, NearLimit, WithinLimits } = reason.LimitReached;
  const nearly = near.length === 0 ? [] : [`the account is near its limits of ${near.join(', ')}`];
  if (reached.length > 0) {
    const full = `the account has reached its limits of ${reached.join(', ')}. To create more objects, delete some or raise spec.limits`;
    return [{ type, status: 'True', reason: AtLimit, message: [full, ...nearly].join('; ') }];
  }
  if (near.length > 0) return [{ type, status: 'False', reason: NearLimit, message: nearly.join() }];
  return wasSet ? [{ type, status: 'False', reason: WithinLimits, message: 'the account is within its limits' }] : [];
}

/** The facts about an account whose plan has been applied. */
interface AccountFacts {
  readonly name: string;
  /** The limits in force. */
  readonly limits: Limits;
  readonly levels: LimitLevels;
  /** True if the status contains a LimitReached condition. */
  readonly hadLimitReached: boolean;
}

/** Returns the account status after the plan has been applied. */
export function planAccount({ name, limits, levels, hadLimitReached }: AccountFacts): Outcome<AccountStatus> {
  return {
    status: { publicId: publicId('Account', '', name), limits },
    conditions: [
      {
        type: condition.Ready,
        status: 'True',
        reason: reason.Ready.LedgerReady,
        message: 'plan and included tokens are applied',
      },
      ...limitReached(levels, hadLimitReached),
    ],
  };
}

/**
 * The interval in milliseconds for reapplying the plan of a kept account. Short because the account may run out of
 * tokens.
 */
const KEPT_CHECK_MS = 30_000;

/**
 * Returns the status for an account which is being deleted, but is still referenced by a workspace. Like a volume in
 * use, it will be kept.
 */
export function planStillInUse(
  { name, limits }: Pick<AccountFacts, 'name' | 'limits'>,
  workspaces: readonly string[],
): Exclude<Finalization<AccountStatus>, 'done'> {
  const message = `the account is being deleted but still pays for its workspaces. Delete these workspaces: ${nameSome(workspaces)}`;
  const { StillInUse } = reason.Ready;
  return {
    status: { publicId: publicId('Account', '', name), limits },
    waitingMs: KEPT_CHECK_MS,
    conditions: [
      { type: condition.Ready, status: 'False', reason: StillInUse, message },
      { type: condition.Reconciling, status: 'True', reason: reason.Reconciling.Progressing, message },
    ],
    events: [{ type: 'Warning', reason: StillInUse, message }],
  };
}
