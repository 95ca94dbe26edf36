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
 * Writes the Secret `<integration>-invitation`. The Secret has an owner reference, so it is deleted with the
 * Integration. If the Secret is no longer needed, its data is removed, because the controller does not have permission
 * to delete Secrets.
 *
 * @param token the token to write. If it is undefined, the data of the Secret is removed.
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
