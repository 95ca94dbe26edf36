import { tenantId } from '../../core/ids/ids.ts';
import type { RoutingReader } from '../../plane/routing-reader.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { Caches } from '../caches/caches.ts';
import { fromRedis } from './redis-failures.ts';
import { useShareOf } from './redis-shares.ts';

/** The number of streams whose stored bytes are read at the same time. */
const STREAMS_AT_ONCE = 100;

/**
 * Returns a function that reads the number of bytes that the events of an account use in Redis. Takes one command for
 * each stream, so concurrent calls for an account share the next reading.
 */
export function createStoredBytes({
  caches,
  routing,
}: {
  readonly caches: Pick<Caches, 'by' | 'list'>;
  readonly routing: Pick<RoutingReader, 'readStoredBytes'>;
}): (account: string) => Promise<number> {
  const flight = createSingleFlight<number>();

  async function read(account: string): Promise<number> {
    const streams = caches
      .by('Workspace', 'account', account)
      .flatMap(({ metadata: { name } }) =>
        caches.list('CatalogStream', name).map(stream => [tenantId(name), stream.metadata.name] as const),
      );
    let bytes = 0;
    for (let at = 0; at < streams.length; at += STREAMS_AT_ONCE) {
      const slice = streams.slice(at, at + STREAMS_AT_ONCE);
      const each = slice.map(([tenant, queue]) => routing.readStoredBytes(tenant, queue));
      bytes += (await fromRedis(Promise.all(each))).reduce((sum, stored) => sum + stored, 0);
    }
    return bytes;
  }

  // The reading does not end when the caller who started it disconnects.
  return account => flight(account, () => useShareOf({ account }, () => read(account)));
}
