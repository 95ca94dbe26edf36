import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { row } from '../../../../test/support/part/part.ts';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import { sealSlotEndpoint } from '../../../core/delivery/slot-endpoint.ts';
import { createGate, type GateChange } from '../../../part/gate/gate.ts';
import type { SubscriptionRow } from '../../../part/gate/subscription-row.ts';
import { type Part, partKeys, slotOf } from '../../../part/keys.ts';
import { createIngest, type PartEvent } from '../../../part/log/ingest.ts';
import { connectRedis, type RedisClient } from '../../../redis/client.ts';
import { findRedis } from '../../../redis/connection/connections.ts';
import { createPushConnection } from '../../../redis/connection/push-connection.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createEndpointClient } from '../../dispatcher/endpoint-client.ts';
import { createPartWorker } from '../part-worker.ts';
import { createPartCalls, type PartWorkerDeps } from '../part-worker-deps.ts';
import { createRoom } from '../room.ts';

const log = createLogger({ level: 'silent' });
export const rootKey = Buffer.alloc(32, 7);
const keyRing = keyRingOf(rootKey);
export const { sealKeys } = keyRing.first();
const INC = 'inc1';

export interface EndpointShort {
  readonly url: string;
  readonly retryMs?: readonly number[];
  readonly timeoutMs?: number;
}

/** Creates the dependencies for a worker which uses separate connections. The callbacks of the worker do nothing. */
export async function connectWorker(name: string, url: string) {
  const redis = await connectRedis(url, log);
  const pushes = createPushConnection(await findRedis({ url }, log), log);
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'] });
  const deps: PartWorkerDeps = {
    name,
    redis,
    pushes,
    ...createPartCalls(redis),
    keys: keyRing,
    version: '0',
    room: createRoom(1_000),
    bodyRoom: createRoom(64 * 2 ** 20),
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    random: () => 0,
    attempt: client.attempt,
    onAttempt: () => {},
    onDisabled: () => {},
    onDelivery: () => {},
    onClosed: () => {},
    log,
  };
  return { deps, redis, pushes, client };
}

/**
 * A separate part with subscriptions that have endpoints. The part uses the Redis clock.
 *
 * @param tenant by default, another workspace is used for each part
 */
export async function createPartWorld(
  redis: RedisClient,
  url: string,
  tenant = `ten_${randomBytes(8).toString('hex')}`,
) {
  const part: Part = { tenant, queue: `orders-${randomBytes(4).toString('hex')}`, gen: 'gen1', number: 0 };
  const keys = partKeys(part);
  const gate = createGate(redis);
  const ingest = createIngest(redis);
  const slot = (name: string) => slotOf(`sub_${name}`, INC);
  const disabled: string[] = [];
  const news: string[] = [];
  let sent = 0;

  async function change(...changes: GateChange[]) {
    const answer = await gate(part, 1, changes);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
  }

  const rowOf = (name: string, fields: Partial<SubscriptionRow> = {}): GateChange => ({
    kind: 'row',
    slot: slot(name),
    row: row(fields),
  });
  const endpointOf = (name: string, { url: to, retryMs = [100, 100, 100], timeoutMs = 5_000 }: EndpointShort) => {
    const config = { url: to, timeoutMs, retryMs, headers: {}, salt: 'a-salt', secretVersion: 1 };
    const sealed = sealSlotEndpoint(sealKeys, { subscription: `sub_${name}`, inc: INC }, config);
    return { kind: 'endpoint', slot: slot(name), sealed } as const;
  };

  const meta = { cfgv: 'c1', state: 'open', maxBytes: String(2 ** 40), ready: '1' } as const;
  await change(
    { kind: 'begin' },
    { kind: 'marker' },
    ...Object.entries(meta).map(([field, value]) => ({ kind: 'meta' as const, field: field as 'ready', value })),
  );

  return {
    part,
    keys,
    slot,
    change,
    rowOf,
    endpointOf,
    disabled,
    /** Slot and trouble of the news of deliveries. */
    news,
    subscribe: (name: string, endpoint: EndpointShort, groupKeys: readonly string[], row?: Partial<SubscriptionRow>) =>
      change(
        rowOf(name, row),
        endpointOf(name, endpoint),
        ...groupKeys.map(groupKey => ({ kind: 'on' as const, slot: slot(name), groupKey })),
      ),
    /** Stores events whose bodies consist of the group key and a number. Returns the bodies. */
    async send(...groupKeys: string[]): Promise<string[]> {
      const bodies = groupKeys.map(groupKey => `${groupKey}${sent++}`);
      const events = bodies.map((body, i): PartEvent => {
        return { groupKey: groupKeys[i] as string, meta: '{"s":"/orders"}', body: Buffer.from(body) };
      });
      const answer = await ingest(part, 'c1', events);
      if (answer.answer !== 'OK' || answer.events.length < events.length) throw new Error(answer.answer);
      return bodies;
    },
    ingest: (event: PartEvent) => ingest(part, 'c1', [event]),
    /** in flight, routed, waiting, delivered, dead, expired. */
    async counts(name: string): Promise<number[]> {
      const text = (await redis.call('hget', keys.counts, slot(name))) as string | null;
      return (text ?? '0 0 0 0 0 0').split(' ').slice(0, 6).map(Number);
    },
    /** Checks that nothing is claimed, waiting, or parked. */
    async isEmpty(): Promise<boolean> {
      const { claims, lanes, pending, waiting, retries, tries } = keys;
      return (await redis.call('exists', claims, lanes, pending, waiting, retries, tries)) === 0;
    },
    /** Starts a worker that uses separate connections. You can use `change` to modify its dependencies. */
    async startWorker(name: string, alter: (deps: PartWorkerDeps) => Partial<PartWorkerDeps> = () => ({}), to = url) {
      const { deps: own, redis: connection, pushes, client } = await connectWorker(name, to);
      const deps: PartWorkerDeps = {
        ...own,
        onDisabled: (_part, each) => void disabled.push(each),
        onDelivery: (_part, each, { now }) => void news.push(`${each} ${now.trouble}`),
      };
      const worker = createPartWorker({ ...deps, ...alter(deps) }, part);
      /** Disconnects it from Redis permanently, like a crash. Any attempts that are in progress will continue. */
      let isDead = false;
      const die = async () => {
        isDead = true;
        pushes.close();
        await connection.close();
      };
      onTestFinished(async () => {
        const stopped = worker.stop();
        // If it has been disconnected, it will wait for Redis.
        if (!isDead) await stopped;
        await die();
        await client.close();
      });
      /** Resolves when it has read everything that was pushed before. */
      const hear = () => pushes.fence(keys.channel);
      return { ...worker, die, hear, redis: connection, commands: connection.commandsSent };
    },
  };
}

export type PartWorld = Awaited<ReturnType<typeof createPartWorld>>;
