import { instanceFields } from '../../../api/instance.ts';
import type { Owner } from '../../../api/owner.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { FREE_ACCOUNT_PATTERN, freeAccountName } from '../../../core/ids/invitation-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Identity } from '../../auth/identity.ts';
import { mayActForAccount, ownerKey } from '../../auth/ownership.ts';
import type { Cached } from '../../caches/cached.ts';
import { requireRole } from '../../contract/roles.ts';
import type { Facade } from '../../objects/facade.ts';

/** Returns true if this entry directly makes the caller an Owner. Groups are not taken into account. */
function isOwn(owner: Owner, { issuer, subject }: Identity): boolean {
  return owner.issuer === issuer && owner.subject === subject && owner.role === 'Owner';
}

/**
 * Returns true if the account was created for a different user, and the caller was added as a member later. Such an
 * account must not count as their own: anyone could prevent other users from getting a Free account.
 */
function isShared({ metadata, spec }: Pick<Cached<'Account'>, 'metadata' | 'spec'>, identity: Identity): boolean {
  const others = spec.owners.filter(owner => owner.role === 'Owner' && !isOwn(owner, identity));
  return others.length > 0 && new RegExp(FREE_ACCOUNT_PATTERN).test(metadata.name);
}

/**
 * Returns all Free accounts directly owned by the caller, not including the account created by the facade. Without this
 * check, callers could get the included tokens twice.
 */
export function otherFreeAccounts(
  accounts: readonly Pick<Cached<'Account'>, 'metadata' | 'spec'>[],
  identity: Identity,
  own: string,
): string[] {
  return accounts
    .filter(({ metadata, spec }) => metadata.name !== own && spec.plan === 'Free')
    .filter(account => account.spec.owners.some(owner => isOwn(owner, identity)) && !isShared(account, identity))
    .map(({ metadata }) => publicId('Account', '', metadata.name))
    .toSorted();
}

/**
 * Returns the name of the caller's Free account. The account is created if it does not exist.
 *
 * @throws Refusal 409 `free_account_exists` if the caller owns another Free account, or if this one is now on another
 *   plan. The call must then include the account
 * @throws Refusal 403 if the caller no longer owns or administers the account
 */
export async function ownFreeAccount(facade: Facade, identity: Identity): Promise<string> {
  const { caches, writer, keys, instance, invitedLimits } = facade;
  const { issuer, subject } = identity;
  const name = freeAccountName(keys.oldest().secret, issuer, subject);
  return writer.edit(async () => {
    const before = await caches.live('Account', { name });
    if (before !== undefined && before.metadata.deletionTimestamp === undefined) {
      const role = mayActForAccount(identity, before);
      if (role === undefined) throw new Refusal('forbidden');
      requireRole(role, 'Admin');
      if (before.spec.plan === 'Free') return name;
      const id = publicId('Account', '', name);
      throw new Refusal(
        'free_account_exists',
        `The plan of your account ${id} is no longer Free. Send its id as accountPublicId.`,
      );
    }
    const others = otherFreeAccounts(caches.by('Account', 'owner', ownerKey({ issuer, subject })), identity, name);
    if (others.length > 0) {
      throw new Refusal(
        'free_account_exists',
        `You own the accounts ${others.join(', ')}. Send one of them as accountPublicId.`,
      );
    }
    await writer.apply(
      'Account',
      { name },
      {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['owners', 'instance', 'limits'],
        // Leave out plan and tokens so that the defaults of the kind apply. The operator may change these values.
        spec: {
          owners: [{ issuer, subject, role: 'Owner' }],
          ...(Object.keys(invitedLimits).length === 0 ? {} : { limits: invitedLimits }),
          ...instanceFields(instance),
        },
      },
    );
    return name;
  });
}
