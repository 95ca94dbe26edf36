import { signingSecretName } from '../../../api/well-known.ts';
import type { Caches } from '../../caches/caches.ts';
import { ownersOf } from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for Subscription keys. A Subscription is enqueued when its mirrored Secret is changed or deleted.
 * It is also enqueued when another Secret with the same name is deleted.
 */
export function subscriptionSources(caches: Caches): readonly KeySource[] {
  return [
    keysFrom(caches.headerSecrets, (old, current) => {
      if (old === undefined || current !== undefined) return [];
      const key = old.key.replace(/-signing$/, '');
      const name = caches.Subscription.store.get(key)?.metadata.name;
      return name !== undefined && old.key.endsWith(`/${signingSecretName(name)}`) ? [key] : [];
    }),
    keysFrom(caches.signingSecrets, ownersOf),
  ];
}
