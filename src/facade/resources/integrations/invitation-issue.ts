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
 * Returns the open integration for an address, which is created if necessary. The name includes the number of closed
 * integrations, so equal calls will create the same object on any replica.
 *
 * @throws Refusal
 */
export async function inviteByAddress(facade: Facade, owned: OwnedTenant, email: string): Promise<Invited> {
  const tenant = owned.name;
  const known = await findOpen(facade, tenant, email);
  if (known !== undefined) return { integration: known, made: false };
  for (let closed = 0; ; closed++) {
    const name = {
      namespace: tenant,
      name: invitedIntegrationName(facade.keys.oldest().secret, tenant, email, closed),
    };
    // Closed integrations are never reopened. Only read those that may be open.
    const cached = facade.caches.get('Integration', name);
    if (cached !== undefined && !isOpen(cached, facade.wallMs())) continue;
    const invited = await readOrMake(facade, owned, name.name, email);
    if (isOpen(invited.integration, facade.wallMs())) return invited;
  }
}
