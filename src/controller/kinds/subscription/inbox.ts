import { generationOf, publicId } from '../../../core/ids/ids.ts';
import type { InboxRef } from '../../../plane/inbox-ref.ts';
import type { Cached } from '../../caches/caches.ts';

/** Returns a reference to a Subscription's inbox. */
export function inboxOf({ metadata, spec }: Cached<'Subscription'>): InboxRef {
  return {
    integration: publicId('Integration', spec.producer, spec.integration),
    sub: publicId('Subscription', metadata.namespace as string, metadata.name),
    inc: generationOf(metadata.uid),
  };
}
