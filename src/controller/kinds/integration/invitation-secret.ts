import {
  FIELD_MANAGER,
  INVITATION_SECRET_FIELD,
  INVITATION_SECRET_TYPE,
  invitationSecretName,
} from '../../../api/well-known.ts';
import { apiVersionOf, resourceOf, SECRETS } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';

/**
 * Writes the `<integration>-invitation` Secret. An owner reference ensures that it is deleted along with the
 * Integration. The controller isn't permitted to delete Secrets, so once the Secret is no longer needed we remove its
 * data instead.
 *
 * @param token the token to write, or undefined to remove the Secret's data
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
