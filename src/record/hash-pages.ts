import type { RedisClient } from '../redis/client.ts';

/** The number of fields that Redis reads at once. Redis processes nothing else in the meantime. */
const PAGE = 1_000;
/** The maximum number of times that a hash is read. */
const MOST_READS = 3;

/**
 * Reads a hash of any size, one page at a time. Includes all fields that exist the whole time, even if there are
 * concurrent changes to others, which may or may not be included. A cursor is only valid for the master that has
 * returned it. After a failover, fields would be missing. If the number of fields is not the expected one, this starts
 * again.
 *
 * @param pace awaited before each page
 */
export async function readPages(
  redis: Pick<RedisClient, 'call'>,
  key: string,
  pace: () => Promise<void> = () => Promise.resolve(),
): Promise<Map<string, string>> {
  for (let reads = 1; ; reads++) {
    const fields = new Map<string, string>();
    let cursor = '0';
    let pages = 0;
    do {
      await pace();
      const [next, flat] = (await redis.call('hscan', key, cursor, 'COUNT', PAGE)) as [string, string[]];
      for (let at = 0; at < flat.length; at += 2) fields.set(flat[at] as string, flat[at + 1] as string);
      cursor = next;
      pages++;
    } while (cursor !== '0');
    if (pages === 1 || reads === MOST_READS || (await redis.call('hlen', key)) === fields.size) return fields;
  }
}
