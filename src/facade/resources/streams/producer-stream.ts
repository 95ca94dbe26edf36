import { Refusal } from '../../../http/refusal.ts';
import type { Facade } from '../../objects/facade.ts';

type Caches = Pick<Facade, 'caches'>;

const noStream = () =>
  new Refusal(
    'unknown_resource',
    'The producer does not have this stream. Choose a stream of its catalog, or ask the producer to create the stream again.',
  );

/** Checks that a stream exists. A subscription to a missing stream would never take effect. @throws Refusal 404 */
export async function assertStream({ caches }: Caches, namespace: string, name: string): Promise<void> {
  const object = { namespace, name };
  const stream = caches.get('CatalogStream', object) ?? (await caches.live('CatalogStream', object));
  if (stream === undefined) throw noStream();
}

/**
 * Asks the API server whether a stream accepts new subscriptions. Such a stream is published and not marked for
 * deletion.
 *
 * @param covered whether a Block covers the stream for the integration
 * @throws Refusal 404, 409 `stream_blocked`, `stream_deprecated`
 */
export async function assertPublished(
  { caches }: Caches,
  namespace: string,
  name: string,
  covered = false,
): Promise<void> {
  const stream = await caches.live('CatalogStream', { namespace, name });
  if (stream === undefined || stream.metadata.deletionTimestamp !== undefined) throw noStream();
  if (covered) throw new Refusal('stream_blocked');
  if (stream.spec.public !== true) throw new Refusal('stream_deprecated');
}
