import { metaKeyOf, PART_NUMBER } from '../part/keys.ts';
import { readStored } from '../part/stored/stored-bytes.ts';
import type { RedisClient } from '../redis/client.ts';
import type { MemorySource } from './ingress/memory/memory-stop.ts';

/** Reads the memory usage of all Redis masters, and the streams that are using the memory. */
export function createMemorySource(redis: Pick<RedisClient, 'masters' | 'masterOf' | 'readHash'>): MemorySource {
  return {
    masters: () => redis.masters().map(({ name, call }) => ({ name, readMemory: () => call('INFO', 'memory') })),
    readStored: async () =>
      (await readStored(redis)).map(({ key, ...stream }) => ({ ...stream, master: redis.masterOf(key) })),
    masterOf: (tenant, queue) => redis.masterOf(metaKeyOf({ tenant, queue, number: PART_NUMBER })),
  };
}
