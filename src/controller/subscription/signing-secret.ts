import { FIELD_MANAGER, SIGNING_SECRET_FIELD, SIGNING_SECRET_TYPE, signingSecretName } from '../../api/well-known.ts';
import { publicId } from '../../core/ids.ts';
import { signingSecret } from '../../core/signing-secret.ts';
import { apiVersionOf, SECRETS } from '../../kube/resource.ts';
import type { Room } from '../room.ts';
import { type Cached, resourceOf } from '../world.ts';

/**
 * Mirrors the newest signing secret into the Secret `<subscription>-signing` beside the Subscription, for partners who
 * verify with what kubectl can read. It goes with the Subscription, as its owner says.
 */
export async function mirrorSigningSecret(
  room: Room,
  subscription: Cached<'Subscription'>,
  version: number,
): Promise<void> {
  const { name, uid } = subscription.metadata;
  const namespace = subscription.metadata.namespace as string;
  const secret = signingSecret(room.rootKey, publicId('Subscription', namespace, name), version);
  const data = Buffer.from(secret).toString('base64');
  const target = { namespace, name: signingSecretName(name) };
  if (room.world.signingSecrets.store.get(`${namespace}/${target.name}`)?.data === data) return;
  const owner = { apiVersion: apiVersionOf(resourceOf('Subscription')), kind: 'Subscription', name, uid };
  await room.client.apply(
    SECRETS,
    target,
    { metadata: { ownerReferences: [owner] }, type: SIGNING_SECRET_TYPE, data: { [SIGNING_SECRET_FIELD]: data } },
    { fieldManager: FIELD_MANAGER.controller, force: true },
  );
}
