import { Redis, type RedisOptions } from 'ioredis';

/** What both halves of the BullMQ pipe share. */

export const QUEUE = 'deliveries';

export interface DeliveryJob {
  /** Of the event: the same for all its endpoints. */
  readonly id: string;
  readonly endpoint: number;
  readonly body: string;
}

let sent = 0;

/** Counts what a connection sends, also one that BullMQ makes of it. Commands inside its scripts do not count. */
function counted(redis: Redis): Redis {
  const sendCommand = redis.sendCommand.bind(redis);
  const duplicate: (override?: Partial<RedisOptions>) => Redis = redis.duplicate.bind(redis);
  redis.sendCommand = (...args: Parameters<typeof sendCommand>) => {
    sent++;
    return sendCommand(...args);
  };
  return Object.assign(redis, { duplicate: (override?: Partial<RedisOptions>) => counted(duplicate(override)) });
}

/** Commands that this process sent to Redis so far; a script counts as one. */
export function commandsSent(): number {
  return sent;
}

/** `maxRetriesPerRequest: null` is what BullMQ demands of a worker. */
export function connectBullmq(port: number): Redis {
  return counted(new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null }));
}
