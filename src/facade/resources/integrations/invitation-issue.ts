import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { addressKey, invitedIntegrationName } from '../../../core/ids/invitation-names.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { isOpen } from './integration-entry.ts';
import { assertMailable } from './invitation-mails.ts';

interface Invited {
  readonly integration: Cached<'Integration'>;
  /** False if the integration already existed. */
  readonly made: boolean;
}

/**
 * Finds an open integration for the address. Such an integration may have been created with kubectl, so it can have any
 * name.
 */
async function findOpen(
  { caches, wallMs }: Facade,
  tenant: string,
  email: string,
): Promise<Cached<'Integration'> | undefined> {
  const known = caches
    .by('Integration', 'address', `${tenant}/${addressKey(email)}`)
    .filter(each => isOpen(each, wallMs()));
  for (const { metadata } of known.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const live = await caches.live('Integration', { namespace: tenant, name: metadata.name });
    if (live !== undefined && live.metadata.deletionTimestamp === undefined && isOpen(live, wallMs())) return live;
  }
  return undefined;
}

async function readOrMake(facade: Facade, owned: OwnedTenant, invited: string, email: string): Promise<Invited> {
  const { caches, writer } = facade;
  const name = { namespace: owned.name, name: invited };
  return writer.edit(async () => {
    const before = await caches.live('Integration', name);
    if (before !== undefined && before.metadata.deletionTimestamp === undefined)
      return { integration: before, made: false };
    await assertMailable(facade, owned, email);
    const integration = await writer.apply('Integration', name, {
      manager: FIELD_MANAGER.facade,
      before,
      concern: ['invitedEmail'],
      spec: { invitedEmail: email },
    });
    return { integration, made: true };
  });
}

/**
 * Returns the number after a closed integration that is not closed itself, at or after `from`. An address can have
 * thousands of closed integrations, so we don't try each number. Some may be missing because they were deleted.
 */
function findUnclosed(from: number, isClosed: (number: number) => boolean): number {
  let closed = from - 1;
  let unclosed = from;
  while (isClosed(unclosed)) [closed, unclosed] = [unclosed, 2 * unclosed - from + 1];
  while (unclosed - closed > 1) {
    const middle = Math.floor((closed + unclosed) / 2);
    if (isClosed(middle)) closed = middle;
    else unclosed = middle;
  }
  return unclosed;
}

/**
 * Returns the open integration for an address, which is created if necessary. The name includes the number of closed
 * integrations, so equal calls will create the same object on any replica.
 *
 * @throws Refusal
 */
export async function inviteByAddress(facade: Facade, owned: OwnedTenant, email: string): Promise<Invited> {
  const { caches, keys, wallMs } = facade;
  const known = await findOpen(facade, owned.name, email);
  if (known !== undefined) return { integration: known, made: false };
  const nameOf = (number: number) => invitedIntegrationName(keys.oldest().secret, owned.name, email, number);
  // Closed integrations are never reopened. Only read those that may be open.
  const isClosed = (number: number) => {
    const cached = caches.get('Integration', { namespace: owned.name, name: nameOf(number) });
    return cached !== undefined && !isOpen(cached, wallMs());
  };
  for (let number = findUnclosed(0, isClosed); ; number = findUnclosed(number + 1, isClosed)) {
    const invited = await readOrMake(facade, owned, nameOf(number), email);
    if (isOpen(invited.integration, wallMs())) return invited;
  }
}
