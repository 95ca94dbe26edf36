import { Redis, type RedisOptions } from 'ioredis';

export const QUEUE = 'deliveries';

export interface DeliveryJob {
  /** The event's id, which is the same for all endpoints. */
  readonly id: string;
  readonly endpoint: number;
  readonly body: string;
}

let sent = 0;

/** Counts the commands of a connection and of its duplicates made by BullMQ, but not those inside scripts. */
function counted(redis: Redis): Redis {
  const sendCommand = redis.sendCommand.bind(redis);
  const duplicate: (override?: Partial<RedisOptions>) => Redis = redis.duplicate.bind(redis);
  redis.sendCommand = (...args: Parameters<typeof sendCommand>) => {
    sent++;
    return sendCommand(...args);
  };
  return Object.assign(redis, { duplicate: (override?: Partial<RedisOptions>) => counted(duplicate(override)) });
}

/** Returns the number of commands sent to Redis so far. A script counts as one command. */
export function commandsSent(): number {
  return sent;
}

/** BullMQ requires `maxRetriesPerRequest: null` for workers. */
export function connectBullmq(port: number): Redis {
  return counted(new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null }));
}
