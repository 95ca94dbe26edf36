import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { readPart } from '../../../src/part/inbox/find-part.ts';
import { createPartInboxReader } from '../../../src/part/inbox/inbox-reader.ts';
import { createFindRecordedSlot } from '../../../src/part/inbox/recorded-slot.ts';
import { inboxRefOf } from '../../../src/part/inbox/ref-names.ts';
import { partKeys } from '../../../src/part/keys.ts';
import type { InboxRef } from '../../../src/plane/inbox-ref.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { integrationKeys } from '../../../src/redis/keys.ts';
import type { NamedScript } from '../../../src/redis/named-scripts.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import type { Sluice } from '../../support/sluice.ts';
import type { Installation } from './installation.ts';
import { createPublisher, type Publisher } from './publisher.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { activation, apply, ingressKey, integration, pkg, stream, subscription, tenant, waitForAll } from './world.ts';

export const PRODUCER = 'shop';
export const QUEUES = ['orders', 'prices', 'refunds', 'stock'];
/** The partners. Activations of ada are changed, streams of bob are blocked, and both are changed for cy. */
export const PARTNERS = ['ada', 'bob', 'cy'] as const;
export type Partner = (typeof PARTNERS)[number];

/** Group keys that are always open for bob and cy, each in one stream. */
export const ALWAYS = Array.from({ length: 8 }, (_, n) => ({
  groupKey: `always-${n}`,
  queue: QUEUES[n % 4] as string,
}));
const KEY = 'an-ingress-key-of-the-shop';
/**
 * The retries of a failing lane take up to several seconds, so that inboxes contain many events when a lever is moved.
 */
const RETRIES = ['300ms', '900ms', '1500ms', ...Array.from({ length: 13 }, () => '500ms')];

export const integrationOf = (partner: string) => publicId('Integration', PRODUCER, partner);
/** Returns the name of the endpoint for the subscription of a partner to a stream. */
export const endpointOf = (partner: string, queue: string) => `${partner}-${queue}`;
export const packageOf = (queue: string) => `only-${queue}`;

/** A producer with four streams and a package for each of them, and three partners subscribed to all streams. */
export interface BarrierWorld {
  readonly redis: RedisClient;
  readonly receiver: Receiver;
  readonly publisherOf: (queue: string) => Publisher;
  /** Returns the id of the last event routed to the partner, by stream. */
  readonly newest: (partner: Partner, queues: readonly string[]) => Promise<Map<string, string>>;
  /** Returns the events routed since then. */
  readonly routedSince: (
    partner: Partner,
    marks: ReadonlyMap<string, string>,
  ) => Promise<{ readonly id: string; readonly groupKey: string }[]>;
  /** Returns the ref of each event, by its published id. */
  readonly refs: (queue: string) => Promise<Map<string, string>>;
  readonly close: () => Promise<void>;
}

/** A position before all refs. */
const NONE = '0-0';
const PAGE = 250;

const READ_LIST: NamedScript = {
  name: 'read-list',
  source: "#!lua flags=no-writes\nreturn redis.call('HGET', KEYS[1], ARGV[1])",
  keys: ['lists'],
  listedKeys: undefined,
  args: ['slot'],
  takesMore: false,
};

/** Reads the routed events from the parts of the streams. */
function viewRouted(
  redis: RedisClient,
  inboxOf: (partner: Partner, queue: string) => InboxRef,
): Pick<BarrierWorld, 'newest' | 'routedSince' | 'refs'> {
  const findSlot = createFindRecordedSlot(redis);
  const reader = createPartInboxReader(redis, findSlot);

  async function newestOf(inbox: InboxRef): Promise<string> {
    const at = await findSlot(inbox);
    if (at === undefined) throw new Error('the part is missing');
    // New entries are added at the end of the list of a slot: 6 bytes for the milliseconds, and 2 bytes for the
    // sequence.
    const call = { keys: partKeys(at.part), args: { slot: at.slot } };
    const list = (await redis.runNamedBuffers(READ_LIST, call)) as Buffer | null;
    if (list === null || list.length <= 8) return NONE;
    const [ms, sequence] = [list.readUIntBE(list.length - 8, 6), list.readUInt16BE(list.length - 2)];
    return inboxRefOf(ms.toString(16).padStart(11, '0') + sequence.toString(16).padStart(4, '0'));
  }

  async function listSince(inbox: InboxRef, mark: string): Promise<{ id: string; groupKey: string }[]> {
    const found: { id: string; groupKey: string }[] = [];
    let cursor = mark === NONE ? undefined : Buffer.from(mark).toString('base64url');
    do {
      const page = await reader.list(inbox, { limit: PAGE, cursor });
      if (page.answer !== 'OK') throw new Error(page.answer);
      found.push(...page.events.map(({ ref, groupKey = '' }) => ({ id: ref, groupKey })));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  return {
    newest: async (partner, queues) =>
      new Map(await Promise.all(queues.map(async queue => [queue, await newestOf(inboxOf(partner, queue))] as const))),
    routedSince: async (partner, marks) =>
      (await Promise.all([...marks].map(([queue, mark]) => listSince(inboxOf(partner, queue), mark)))).flat(),
    refs: async queue => {
      const part = await readPart(redis, tenantId(PRODUCER), queue);
      if (part === undefined) throw new Error('the part is missing');
      const refs = new Map<string, string>();
      for (let after = NONE; ; ) {
        const entries = (await redis.call(
          'xrange',
          partKeys(part).log,
          `(${after}`,
          '+',
          'COUNT',
          1_000,
        )) as unknown as [string, string[]][];
        for (const [id, fields] of entries) {
          const [ms, sequence] = id.split('-').map(Number) as [number, number];
          const ref = ms.toString(16).padStart(11, '0') + sequence.toString(16).padStart(4, '0');
          refs.set((JSON.parse(fields[fields.indexOf('m') + 1] as string) as { i: string }).i, inboxRefOf(ref));
          after = id;
        }
        if (entries.length < 1_000) return refs;
      }
    },
  };
}

/**
 * Creates the world and waits until it is applied.
 * @param levers group keys that are open at first, by partner
 */
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

  const inboxes = new Map<string, InboxRef>();
  for (const partner of PARTNERS) {
    for (const queue of QUEUES) {
      const sub = publicId('Subscription', partner, `${PRODUCER}-${queue}`);
      const inc = String(await redis.call('hget', integrationKeys(integrationOf(partner)).sub(sub), 'inc'));
      inboxes.set(endpointOf(partner, queue), { integration: integrationOf(partner), sub, inc });
    }
  }
  const publishers = new Map(
    QUEUES.map(queue => [queue, createPublisher({ ingressUrl, producer: PRODUCER, queue, key: KEY })]),
  );
  return {
    redis,
    receiver,
    publisherOf: queue => publishers.get(queue) as Publisher,
    ...viewRouted(redis, (partner, queue) => inboxes.get(endpointOf(partner, queue)) as InboxRef),
    close: async () => {
      await Promise.all([...publishers.values()].map(publisher => publisher.close()));
      await redis.close();
      await receiver.close();
    },
  };
}
