import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { AccountStatus } from '../../../api/kinds/account.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Outcome } from '../../engine/outcome.ts';

/** Returns an account's status once its plan has been applied. */
export function planAccount(name: string): Outcome<AccountStatus> {
  return {
    status: { publicId: publicId('Account', '', name) },
    conditions: [
      {
        type: CONDITION.Account.Ready,
        status: 'True',
        reason: REASON.Account.Ready.LedgerReady,
        message: 'plan and included tokens are applied',
      },
    ],
  };
}
