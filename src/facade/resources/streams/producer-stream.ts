import { Refusal } from '../../../http/refusal.ts';
import type { Facade } from '../../objects/facade.ts';

type World = Pick<Facade, 'world'>;

const noStream = () => new Refusal('unknown_resource', 'The producer has no such stream.');

/** What waits for a stream that is not there cannot be in force; the cache alone refuses nothing. @throws Refusal 404 */
export async function assertStream({ world }: World, namespace: string, name: string): Promise<void> {
  const object = { namespace, name };
  const stream = world.get('CatalogStream', object) ?? (await world.live('CatalogStream', object));
  if (stream === undefined) throw noStream();
}

/**
 * Nobody new is admitted to a stream that is not published, or that goes; the API server alone says so.
 *
 * @param covered whether a Block covers it for the one who asks
 * @throws Refusal 404, 409 `stream_blocked`, `stream_deprecated`
 */
export async function assertPublished(
  { world }: World,
  namespace: string,
  name: string,
  covered = false,
): Promise<void> {
  const stream = await world.live('CatalogStream', { namespace, name });
  if (stream === undefined || stream.metadata.deletionTimestamp !== undefined) throw noStream();
  if (covered) throw new Refusal('stream_blocked');
  if (stream.spec.public !== true) throw new Refusal('stream_deprecated');
}
