import type { Account } from '../../api/account.ts';
import { publicId } from '../../core/ids.ts';
import type { Room } from '../room.ts';
import { planAccount } from './plan.ts';

/** States the account's plan in Redis, where tokens are counted. */
export function reconcileAccount({ control, fence, explain }: Room) {
  return async ({ metadata, spec }: Pick<Account, 'spec'> & { metadata: { name: string } }) => {
    try {
      await control.setAccount(fence(), publicId('Account', '', metadata.name), spec.plan, spec.includedTokens);
    } catch (error) {
      throw explain(error);
    }
    return planAccount(metadata.name);
  };
}
