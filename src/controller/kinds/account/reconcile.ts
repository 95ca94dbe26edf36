import type { Account } from '../../../api/kinds/account.ts';
import { isShort } from '../../../core/events/tokens.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Context } from '../../context/context.ts';
import { planAccount } from './plan.ts';

/**
 * The requeue interval for an account that has used all its tokens. It is short because the message about new tokens
 * may be lost.
 */
const SHORT_CHECK_MS = 30_000;

/**
 * Writes the plan of the account to Redis, where the tokens are counted. This also wakes the queues that were waiting
 * for tokens and records whether there are queues that are still waiting.
 */
export function reconcileAccount({ control, queueHints, shortages, fence, nowMs, explain }: Context) {
  return async ({ metadata, spec }: Pick<Account, 'spec'> & { metadata: { name: string } }) => {
    const account = publicId('Account', '', metadata.name);
    try {
      const changed = await control.setAccount(fence(), account, spec.plan, spec.includedTokens);
      const balance = await control.readBalance(account);
      const waiting = balance?.shortages ?? [];
      if (changed && waiting.length > 0) {
        await queueHints.lower(waiting.map(({ queue }) => ({ member: queue, dueMs: nowMs() })));
      }
      const short = balance !== undefined && isShort(balance, waiting, nowMs());
      shortages.note(metadata.name, short);
      return { ...planAccount(metadata.name), requeueAfterMs: short ? SHORT_CHECK_MS : undefined };
    } catch (error) {
      throw explain(error);
    }
  };
}
