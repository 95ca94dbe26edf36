import {
  FIELD_MANAGER,
  SIGNING_SECRET_FIELD,
  SIGNING_SECRET_TYPE,
  signingSecretName,
} from '../../../api/well-known.ts';
import { type SigningRoot, signedBy, signingSecret } from '../../../core/delivery/signing-secret.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { apiVersionOf, resourceOf, SECRETS } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { refusalOf, type SecretRefusal } from '../refused-secret.ts';

/**
 * Writes the newest signing secret to the `<subscription>-signing` Secret, where partners can read it with kubectl. An
 * owner reference ensures that it is deleted along with the Subscription.
 *
 * Returns a fault if the API server rejects the Secret. Deliveries will be signed regardless.
 */
export async function mirrorSigningSecret(
  context: Context,
  subscription: Cached<'Subscription'>,
  { salt, version }: Pick<SigningRoot, 'salt'> & { readonly version: number },
): Promise<SecretRefusal | undefined> {
  const { name, uid } = subscription.metadata;
  const namespace = subscription.metadata.namespace as string;
  const subscriptionId = publicId('Subscription', namespace, name);
  const { key } = signedBy(subscription.status?.signing, version, context.keys.first().id);
  const rootKey = context.keys.key(key)?.secret;
  // Without the root key, the Live condition names the missing key, and the Secret keeps the last signing secret.
  if (rootKey === undefined) return undefined;
  const secret = signingSecret({ rootKey, subscriptionId, salt }, version);
  const data = Buffer.from(secret).toString('base64');
  const target = { namespace, name: signingSecretName(name) };
  const mirror = context.caches.signingSecrets.store.get(`${namespace}/${target.name}`);
  if (mirror?.data === data && mirror.owner === name) return undefined;
  const owner = { apiVersion: apiVersionOf(resourceOf('Subscription')), kind: 'Subscription', name, uid };
  try {
    await context.client.apply(
      SECRETS,
      target,
      { metadata: { ownerReferences: [owner] }, type: SIGNING_SECRET_TYPE, data: { [SIGNING_SECRET_FIELD]: data } },
      { fieldManager: FIELD_MANAGER.controller, force: true },
    );
    return undefined;
  } catch (error) {
    const secret = { ...target, type: SIGNING_SECRET_TYPE, content: 'signing secret' };
    const refusal = await refusalOf(context, secret, error);
    if (refusal === undefined) throw error;
    return refusal;
  }
}
