import { Redis } from 'ioredis';
import { type Push, parsePush } from '../../../src/part/claims/message.ts';
import { type Part, partKeys } from '../../../src/part/keys.ts';
import type { RedisClient } from '../../../src/redis/client.ts';

export interface Pushes {
  /** The messages received since the last call, after all messages published before this call have been received. */
  readonly take: () => Promise<Push[]>;
  readonly close: () => void;
}

/** The location of a part's channel. In a Cluster, this is the node of its slot. */
async function connectTo(redis: RedisClient, url: string, channel: string): Promise<Redis> {
  const first = new Redis(url.split(',')[0] as string);
  if (!redis.cluster) return first;
  const slot = (await first.cluster('KEYSLOT', channel)) as number;
  const ranges = await first.cluster('SLOTS');
  first.disconnect();
  const [host, port] = ranges.find(([from, till]) => from <= slot && slot <= till)?.[2] ?? [];
  return new Redis(port as number, host as string);
}

/** Listens to a part's pushes. */
export async function listenTo(redis: RedisClient, url: string, part: Part): Promise<Pushes> {
  const { channel } = partKeys(part);
  const connection = await connectTo(redis, url, channel);
  let pushes: Push[] = [];
  connection.on('smessageBuffer', (_channel: Buffer, message: Buffer) => pushes.push(parsePush(message)));
  await connection.ssubscribe(channel);
  return {
    async take() {
      // The response is received after all messages that were sent before.
      await connection.ssubscribe(channel);
      const taken = pushes;
      pushes = [];
      return taken;
    },
    close: () => connection.disconnect(),
  };
}
