import { randomBytes } from 'node:crypto';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { resourceOf } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';

/** The number of random bytes in a salt. */
const SALT_BYTES = 16;

/**
 * Writes the salt of a Subscription with an endpoint to its status (if it doesn't have a salt), along with the root key
 * of its first secret. Since nothing is sent before the API server has stored the salt, deliveries are never signed
 * with a secret that is lost in a crash.
 *
 * @throws KubeError 409 if the Subscription has changed since it was read
 */
export async function ensureSalt(
  { client, keys }: Pick<Context, 'client' | 'keys'>,
  subscription: Cached<'Subscription'>,
): Promise<{ readonly subscription: Cached<'Subscription'>; readonly salt: string | undefined }> {
  const { metadata, spec, status } = subscription;
  const present = status?.signing?.salt;
  if (present !== undefined || spec.endpoint === undefined) return { subscription, salt: present };
  const salt = randomBytes(SALT_BYTES).toString('base64url');
  const salted = { ...status, signing: { ...status?.signing, salt, key: keys.first().id } };
  const { uid, resourceVersion } = metadata;
  // The resourceVersion prevents two leaders from writing different salts.
  const answer = await client.apply<Cached<'Subscription'>>(
    resourceOf('Subscription'),
    metadata,
    { metadata: { uid, resourceVersion }, status: salted },
    { fieldManager: FIELD_MANAGER.controller, force: true, subresource: 'status' },
  );
  const written = { ...metadata, resourceVersion: answer.metadata.resourceVersion };
  return { subscription: { ...subscription, metadata: written, status: salted }, salt };
}
