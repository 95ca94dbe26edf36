import { z } from 'zod';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Facade } from '../../objects/facade.ts';
import { findOwned } from '../../objects/owned-objects.ts';

/** Public id or key of a stream. The key also serves as the queue name. */
export const StreamChoice = z
  .string()
  .max(63)
  .regex(/^(cat_[0-9a-hjkmnp-tv-z]{20}|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$/, 'must be an id (cat_…) or the key of a stream')
  .meta({ description: 'The public id or key of the stream.', example: 'cat_0123456789abcdefghjk' });

export const StreamName = z
  .object({
    publicId: publicIdField('CatalogStream'),
    key: z.string().meta({ description: 'The stream key, which is also the name of its queue.' }),
  })
  .meta({ id: 'StreamName' });

export function streamName({ metadata }: Cached<'CatalogStream'>): z.output<typeof StreamName> {
  return { publicId: publicId('CatalogStream', metadata.namespace ?? '', metadata.name), key: metadata.name };
}

/** Finds a stream by public id or key. @throws Refusal 404 */
export async function chooseStream(
  facade: Facade,
  namespace: string,
  choice: string,
): Promise<Cached<'CatalogStream'>> {
  if (choice.startsWith('cat_')) return findOwned(facade.caches, 'CatalogStream', namespace, choice);
  const stream = await facade.caches.findNamed('CatalogStream', { namespace, name: choice });
  if (stream === undefined) {
    const detail =
      'The workspace does not have a stream with this key. To find the keys of its streams, list the catalog.';
    throw new Refusal('unknown_resource', detail);
  }
  return stream;
}

/**
 * Returns the integration with the given id, or all integrations in a workspace.
 *
 * @throws Refusal 404
 */
export async function chooseIntegrations(
  { caches }: Facade,
  namespace: string,
  id: string | undefined,
): Promise<readonly Cached<'Integration'>[]> {
  if (id === undefined) {
    return caches.list('Integration', namespace).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }
  return [await findOwned(caches, 'Integration', namespace, id)];
}
