import {
  FIELD_MANAGER,
  INVITATION_SECRET_FIELD,
  INVITATION_SECRET_TYPE,
  invitationSecretName,
} from '../../../api/well-known.ts';
import { apiVersionOf, SECRETS } from '../../../kube/resource.ts';
import { type Cached, resourceOf } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';

/**
 * Writes the Secret `<integration>-invitation`. An owner reference deletes it with the Integration. The controller may
 * not delete Secrets, so it empties those it does not need any more.
 *
 * @param token undefined empties the Secret
 */
export async function writeInvitationSecret(
  client: Context['client'],
  { metadata }: Pick<Cached<'Integration'>, 'metadata'>,
  token: string | undefined,
): Promise<void> {
  const { name, uid } = metadata;
  const owner = { apiVersion: apiVersionOf(resourceOf('Integration')), kind: 'Integration', name, uid };
  const data = token === undefined ? {} : { [INVITATION_SECRET_FIELD]: Buffer.from(token).toString('base64') };
  await client.apply(
    SECRETS,
    { namespace: metadata.namespace as string, name: invitationSecretName(name) },
    { metadata: { ownerReferences: [owner] }, type: INVITATION_SECRET_TYPE, data },
    { fieldManager: FIELD_MANAGER.controller, force: true },
  );
}
