import {
  FIELD_MANAGER,
  SIGNING_SECRET_FIELD,
  SIGNING_SECRET_TYPE,
  signingSecretName,
} from '../../../api/well-known.ts';
import { type SigningRoot, signedBy, signingSecret } from '../../../core/delivery/signing-secret.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { isKubeError, isStale, type KubeError } from '../../../kube/kube-error.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { apiVersionOf, SECRETS } from '../../../kube/resource.ts';
import { type Cached, resourceOf } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';

/** The reason why the Secret couldn't be written, with a message on how to fix this. */
export interface MirrorFault {
  readonly reason: 'NameTaken' | 'Refused';
  readonly message: string;
}

/**
 * Status codes returned by the API server when it rejects a Secret, e.g. due to a validation rule, a quota, a policy,
 * or a missing permission.
 */
const REFUSALS = [400, 403, 409, 422];

/** Returns the fault for a rejected Secret. For a Secret not managed by Sluice, we only read the type. */
async function faultOf(
  context: Context,
  target: { readonly namespace: string; readonly name: string },
  error: KubeError,
) {
  const found = await context.client.get<AnyObject & { readonly type?: string }>(SECRETS, target);
  if (found !== undefined && found.type !== SIGNING_SECRET_TYPE) {
    const message = `a Secret ${target.name} of type ${found.type ?? 'Opaque'} already exists. Delete or rename it so that the controller can write the signing secret`;
    return { reason: 'NameTaken', message } as const;
  }
  const message = `the API server rejected the Secret ${target.name}. Check the quotas and policies of the namespace: ${error.message}`;
  return { reason: 'Refused', message } as const;
}

/**
 * Writes the newest signing secret to the Secret `<subscription>-signing`, where partners can read it with kubectl. An
 * owner reference ensures that it is deleted along with the Subscription.
 *
 * Returns a fault if the API server rejects the Secret. Deliveries will be signed regardless.
 */
export async function mirrorSigningSecret(
  context: Context,
  subscription: Cached<'Subscription'>,
  { salt, version }: Pick<SigningRoot, 'salt'> & { readonly version: number },
): Promise<MirrorFault | undefined> {
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
    if (!isKubeError(error) || isStale(error) || !REFUSALS.includes(error.status)) throw error;
    return faultOf(context, target, error);
  }
}
