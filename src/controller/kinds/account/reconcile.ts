import { CONDITION } from '../../../api/condition-reasons.ts';
import type { Account, AccountStatus } from '../../../api/kinds/account.ts';
import { isShort } from '../../../core/events/tokens.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Context } from '../../context/context.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Finalization } from '../../engine/outcome.ts';
import type { LimitUse } from './limit-use.ts';
import { planAccount, planStillInUse } from './plan.ts';

/**
 * The delay before an account without tokens is requeued. Short because the message about new tokens might get lost.
 */
const SHORT_CHECK_MS = 30_000;

/**
 * The delay before an account is requeued after a shortage, in milliseconds. The new tokens may be enough for the first
 * waiting event, but not for those after it.
 */
const TOPPED_UP_CHECK_MS = 3_000;

type NamedAccount = Pick<Account, 'spec'> & {
  readonly metadata: { name: string };
  readonly status?: AccountStatus | undefined;
};

type AccountContext = Context & { readonly limitUse: Pick<LimitUse, 'levelsOf' | 'limitsOf'> };

/**
 * Writes the account plan to Redis, where the tokens are counted. Also records whether any stream is waiting for
 * tokens. Waiting parts poll by themselves, so they don't need a message about a top-up.
 */
export function reconcileAccount({ control, shortages, fence, nowMs, explain, limitUse }: AccountContext) {
  return async ({ metadata, spec, status }: NamedAccount) => {
    const account = publicId('Account', '', metadata.name);
    try {
      await control.setAccount(fence(), account, spec.plan, spec.includedTokens);
      await control.reclaimTokens(account);
      const balance = await control.readBalance(account);
      const waiting = balance?.shortages ?? [];
      const short = balance !== undefined && isShort(balance, waiting, nowMs());
      const wasShort = shortages.isShort(metadata.name) === true;
      shortages.note(metadata.name, short);
      const planned = planAccount({
        name: metadata.name,
        limits: limitUse.limitsOf({ spec }),
        levels: limitUse.levelsOf({ metadata, spec }),
        hadLimitReached: findCondition(status?.conditions, CONDITION.Account.LimitReached) !== undefined,
      });
      return { ...planned, requeueAfterMs: short ? SHORT_CHECK_MS : wasShort ? TOPPED_UP_CHECK_MS : undefined };
    } catch (error) {
      throw explain(error);
    }
  };
}

/**
 * Waits until no workspace refers to the account, because a workspace without an account can't distribute events.
 * Meanwhile, its plan continues to be applied. The account balance is kept in Redis.
 */
export function finalizeAccount(context: AccountContext) {
  const apply = reconcileAccount(context);
  return async (account: NamedAccount): Promise<Finalization<AccountStatus>> => {
    const { name } = account.metadata;
    const workspaces = context.caches.Workspace.store
      .byIndex('account', name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name);
    if (workspaces.length === 0) return 'done';
    await apply(account);
    return planStillInUse({ name, limits: context.limitUse.limitsOf(account) }, workspaces);
  };
}
