import { setTimeout as delay } from 'node:timers/promises';
import { isAfter } from '../../../src/core/ids/refs.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { queueKeys } from '../../../src/redis/keys.ts';

/** A look at a queue's router. */
interface Sighting {
  /** When it was known, by `performance.now()`. */
  readonly atMs: number;
  /** The router is past everything up to this stream id. */
  readonly cur: string;
  /** Subscriptions (`int/sub.inc`) that it left behind there. */
  readonly behind: readonly string[];
}

export interface RouterWatch {
  /**
   * By when the router had decided about the event for the integration's subscriptions: it was past it, and had left none
   * of them behind. Undefined: it was not seen to.
   */
  readonly decidedMs: (queue: string, streamId: string, integration: string) => number | undefined;
  readonly stop: () => Promise<void>;
}

const EVERY_MS = 10;

/** Notes again and again how far the router is in each queue of the tenant. */
export function watchRouter(redis: RedisClient, tenant: string, queues: readonly string[]): RouterWatch {
  const sightings = new Map<string, Sighting[]>(queues.map(queue => [queue, []]));
  let stopped = false;

  async function look(queue: string): Promise<void> {
    const { meta, behind } = queueKeys(tenant, queue);
    // In this order: a subscription that is not behind after the position was read has been served up to it.
    const [cur, left] = await Promise.all([redis.call('hget', meta, 'cur'), redis.call('hkeys', behind)]);
    sightings.get(queue)?.push({
      atMs: performance.now(),
      cur: (cur as string | null) ?? '0-0',
      behind: left as string[],
    });
  }

  async function run(): Promise<void> {
    while (!stopped) {
      await Promise.all(queues.map(look));
      await delay(EVERY_MS);
    }
  }

  const running = run();
  running.catch(() => {});
  return {
    decidedMs: (queue, streamId, integration) => {
      const seen = sightings.get(queue) ?? [];
      // The first that is not before the event: positions only grow.
      let [low, high] = [0, seen.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (isAfter(streamId, (seen[middle] as Sighting).cur)) low = middle + 1;
        else high = middle;
      }
      const served = ({ behind }: Sighting) => !behind.some(member => member.startsWith(`${integration}/`));
      while (low < seen.length && !served(seen[low] as Sighting)) low++;
      return seen[low]?.atMs;
    },
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}
