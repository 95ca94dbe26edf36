import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import type { InboxRef } from '../../../src/redis/inbox-store.ts';
import { inboxKeys, integrationKeys, queueKeys } from '../../../src/redis/keys.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import type { Sluice } from '../../support/sluice.ts';
import { IS_PARTS } from './audit.ts';
import { viewParts } from './barrier-part.ts';
import type { Installation } from './installation.ts';
import { createPublisher, type Publisher } from './publisher.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { activation, apply, ingressKey, integration, pkg, stream, subscription, tenant, waitForAll } from './world.ts';

export const PRODUCER = 'shop';
export const QUEUES = ['orders', 'prices', 'refunds', 'stock'];
/** Ada's activations are flipped, bob's streams are blocked, cy knows both. */
export const PARTNERS = ['ada', 'bob', 'cy'] as const;
export type Partner = (typeof PARTNERS)[number];

/** Open for bob and cy from the first to the last; each in one queue. */
export const ALWAYS = Array.from({ length: 8 }, (_, n) => ({
  groupKey: `always-${n}`,
  queue: QUEUES[n % 4] as string,
}));
const KEY = 'an-ingress-key-of-the-shop';
/** A lane that fails waits up to a few seconds, so that much lies in the inboxes when a lever is turned. */
const RETRIES = ['300ms', '900ms', '1500ms', ...Array.from({ length: 13 }, () => '500ms')];

export const integrationOf = (partner: string) => publicId('Integration', PRODUCER, partner);
/** How the receiver names the subscription of a partner to a queue. */
export const endpointOf = (partner: string, queue: string) => `${partner}-${queue}`;
export const packageOf = (queue: string) => `only-${queue}`;

/** One producer with four streams and a package for each, three partners that are subscribed to all of them. */
export interface BarrierWorld {
  readonly redis: RedisClient;
  readonly receiver: Receiver;
  readonly publisherOf: (queue: string) => Publisher;
  /** Id of what was last routed to the partner from each queue, by queue. */
  readonly newest: (partner: Partner, queues: readonly string[]) => Promise<Map<string, string>>;
  /** What was routed since then. */
  readonly routedSince: (
    partner: Partner,
    marks: ReadonlyMap<string, string>,
  ) => Promise<{ readonly id: string; readonly groupKey: string }[]>;
  /** Id of the event, as published → its stream id. */
  readonly streamIds: (queue: string) => Promise<Map<string, string>>;
  readonly close: () => Promise<void>;
}

/** Sets the world up and waits until it is applied: the levers `partner` → group keys are open. */
export async function openBarrierWorld(
  { cluster, redis: server }: Installation,
  { ingressUrl }: Sluice,
  levers: Readonly<Record<Partner, readonly string[]>>,
): Promise<BarrierWorld> {
  const receiver = await startReceiver();
  const redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  const always = ALWAYS.map(({ groupKey }) => groupKey);
  const open = { ...levers, bob: always, cy: [...levers.cy, ...always] };
  await apply(cluster, [
    ...[PRODUCER, ...PARTNERS].flatMap(name => tenant(name)),
    ingressKey(PRODUCER, KEY),
    ...QUEUES.flatMap(queue => [stream(PRODUCER, queue), pkg(PRODUCER, packageOf(queue), [queue])]),
    ...PARTNERS.flatMap(partner => [
      integration(PRODUCER, partner),
      ...open[partner].map(groupKey => activation(PRODUCER, partner, groupKey)),
      ...QUEUES.map(queue =>
        subscription(partner, PRODUCER, queue, {
          url: receiver.urlOf(endpointOf(partner, queue)),
          retrySchedule: RETRIES,
        }),
      ),
    ]),
  ]);
  for (const kind of ['catalogstream', 'package']) await waitForAll(cluster, kind, PRODUCER);
  await waitForAll(cluster, 'activation', PRODUCER, 'Effective');
  for (const partner of PARTNERS) await waitForAll(cluster, 'subscription', partner, 'Live');

  const logs = new Map<string, string>();
  const inboxes = new Map<string, InboxRef>();
  for (const partner of PARTNERS) {
    for (const queue of QUEUES) {
      const sub = publicId('Subscription', partner, `${PRODUCER}-${queue}`);
      const inc = String(await redis.call('hget', integrationKeys(integrationOf(partner)).sub(sub), 'inc'));
      logs.set(endpointOf(partner, queue), inboxKeys(integrationOf(partner), sub, inc).log);
      inboxes.set(endpointOf(partner, queue), { integration: integrationOf(partner), sub, inc });
    }
  }
  const logOf = (partner: Partner, queue: string) => logs.get(endpointOf(partner, queue)) as string;

  type Entry = readonly [id: string, fields: readonly string[]];
  /** All entries of a Redis Stream after `from`, in parts. */
  async function readAll(key: string, from: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (let after = from; ; after = entries.at(-1)?.[0] as string) {
      const part = (await redis.call('xrange', key, `(${after}`, '+', 'COUNT', 1_000)) as unknown as Entry[];
      entries.push(...part);
      if (part.length < 1_000) return entries;
    }
  }

  const publishers = new Map(
    QUEUES.map(queue => [queue, createPublisher({ ingressUrl, producer: PRODUCER, queue, key: KEY })]),
  );
  return {
    redis,
    receiver,
    publisherOf: queue => publishers.get(queue) as Publisher,
    newest: async (partner, queues) => {
      const last = queues.map(async queue => {
        const [entry] = (await redis.call(
          'xrevrange',
          logOf(partner, queue),
          '+',
          '-',
          'COUNT',
          1,
        )) as unknown as Entry[];
        return [queue, (entry?.[0] as string | undefined) ?? '0-0'] as const;
      });
      return new Map(await Promise.all(last));
    },
    routedSince: async (partner, marks) => {
      const parts = await Promise.all([...marks].map(([queue, id]) => readAll(logOf(partner, queue), id)));
      return parts.flat().map(([id, [, groupKey = '']]) => ({ id, groupKey }));
    },
    streamIds: async queue => {
      const gen = String(await redis.call('hget', queueKeys(tenantId(PRODUCER), queue).meta, 'gen'));
      const entries = await readAll(queueKeys(tenantId(PRODUCER), queue, gen).bodies, '0-0');
      return new Map(
        entries.map(([id, fields]) => [(JSON.parse(fields[fields.indexOf('m') + 1] as string) as { i: string }).i, id]),
      );
    },
    ...(IS_PARTS
      ? viewParts(redis, PRODUCER, (partner, queue) => inboxes.get(endpointOf(partner, queue)) as InboxRef)
      : {}),
    close: async () => {
      await Promise.all([...publishers.values()].map(publisher => publisher.close()));
      await redis.close();
      await receiver.close();
    },
  };
}
