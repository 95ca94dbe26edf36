import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { AccountStatus } from '../../../api/kinds/account.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Finalization, Outcome } from '../../engine/outcome.ts';
import { nameSome } from '../named-objects.ts';

const condition = CONDITION.Account;
const reason = REASON.Account;

/** Returns an account's status once its plan has been applied. */
export function planAccount(name: string): Outcome<AccountStatus> {
  return {
    status: { publicId: publicId('Account', '', name) },
    conditions: [
      {
        type: condition.Ready,
        status: 'True',
        reason: reason.Ready.LedgerReady,
        message: 'plan and included tokens are applied',
      },
    ],
  };
}

/** Interval in milliseconds for reapplying the plan of a kept account. Short, because its tokens can be used up. */
const KEPT_CHECK_MS = 30_000;

/**
 * Returns the status of an account that is being deleted while workspaces still name it. Like a volume in use, it will
 * be kept.
 */
export function planStillInUse(
  name: string,
  workspaces: readonly string[],
): Exclude<Finalization<AccountStatus>, 'done'> {
  const message = `the account is being deleted but still pays for its workspaces. Delete these workspaces: ${nameSome(workspaces)}`;
  const { StillInUse } = reason.Ready;
  return {
    status: { publicId: publicId('Account', '', name) },
    waitingMs: KEPT_CHECK_MS,
    conditions: [
      { type: condition.Ready, status: 'False', reason: StillInUse, message },
      { type: condition.Reconciling, status: 'True', reason: reason.Reconciling.Progressing, message },
    ],
    events: [{ type: 'Warning', reason: StillInUse, message }],
  };
}
