import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { freeAccountName } from '../../../core/ids/invitation-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Identity } from '../../auth/identity.ts';
import { mayActForAccount } from '../../auth/ownership.ts';
import type { Cached } from '../../objects/cached.ts';
import { subjectKey } from '../../objects/caches.ts';
import type { Facade } from '../../objects/facade.ts';

/** Whether somebody is named in person as an owner: a free account of a group is not one's own. */
function isOwn({ spec }: Pick<Cached<'Account'>, 'spec'>, { issuer, subject }: Identity): boolean {
  return spec.owners.some(owner => owner.issuer === issuer && owner.subject === subject && owner.role === 'Owner');
}

/**
 * The Free accounts, other than the one that the facade makes, which somebody owns in person: a second one would include
 * tokens a second time.
 */
export function otherFreeAccounts(
  accounts: readonly Pick<Cached<'Account'>, 'metadata' | 'spec'>[],
  identity: Identity,
  own: string,
): string[] {
  return accounts
    .filter(({ metadata, spec }) => metadata.name !== own && spec.plan === 'Free')
    .filter(account => isOwn(account, identity))
    .map(({ metadata }) => publicId('Account', '', metadata.name))
    .toSorted();
}

/**
 * Name of the caller's own Free account, made when it is missing.
 *
 * @throws Refusal 409 `free_account_exists` when the caller owns another one, or this one is Free no longer: then the
 *   account has to be named; 403 when it is the caller's no longer
 */
export async function ownFreeAccount({ world, objects, rootKey }: Facade, identity: Identity): Promise<string> {
  const { issuer, subject } = identity;
  const name = freeAccountName(rootKey, issuer, subject);
  return objects.edit(async () => {
    const before = await world.live('Account', { name });
    if (before !== undefined && before.metadata.deletionTimestamp === undefined) {
      if (mayActForAccount(identity, before) === undefined) throw new Refusal('forbidden');
      if (before.spec.plan === 'Free') return name;
      const id = publicId('Account', '', name);
      throw new Refusal('free_account_exists', `${id} is yours and free no longer: name it as accountPublicId.`);
    }
    const others = otherFreeAccounts(world.by('Account', 'subject', subjectKey(issuer, subject)), identity, name);
    if (others.length > 0) {
      throw new Refusal('free_account_exists', `You own ${others.join(', ')}: name one as accountPublicId.`);
    }
    await objects.apply(
      'Account',
      { name },
      {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['owners'],
        // Plan and tokens are the kind's defaults, and stay the operator's to change.
        spec: { owners: [{ issuer, subject, role: 'Owner' }] },
      },
    );
    return name;
  });
}
