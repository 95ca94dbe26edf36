import { signingSecretName } from '../../../api/well-known.ts';
import type { Caches } from '../../caches/caches.ts';
import { ownersOf } from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';
import { fromFreedNames } from '../refused-secret.ts';

/**
 * Returns the sources for Subscription keys. A Subscription is enqueued when its mirrored Secret is changed or deleted.
 * A Subscription is also enqueued when another Secret with the same name is deleted.
 */
export function subscriptionSources(caches: Caches): readonly KeySource[] {
  return [fromFreedNames(caches, 'Subscription', signingSecretName), keysFrom(caches.signingSecrets, ownersOf)];
}
