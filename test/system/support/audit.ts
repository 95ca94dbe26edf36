import { RINGS, seriesOf, slotsOf, type Traffic, windowOf } from '../../../src/core/events/series.ts';
import { generationOf, publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { partKeys } from '../../../src/part/keys.ts';
import { createPartTrafficReader } from '../../../src/part/reasons/traffic-reader.ts';
import { connectRedis } from '../../../src/redis/client.ts';
import { inboxKeys, integrationKeys, queueKeys, tenantKeys } from '../../../src/redis/keys.ts';
import { createTrafficReader } from '../../../src/redis/traffic-reader.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import type { RedisServer } from '../../support/redis/server.ts';
import { readInboxOfPart } from './audit-part.ts';
import type { Sample } from './publisher.ts';
import type { Receiver } from './receiver.ts';
import { kubectl } from './world.ts';

/** Whether events are in parts, in which case they are read there. */
export const IS_PARTS = process.env.TEST_LAYOUT === 'parts';

/** Lists that are empty when nothing is wrong. */
interface Faults {
  /** Expected and never answered with 2xx. */
  readonly missing: string[];
  /** Attempts of events that must not come here. */
  readonly unexpected: string[];
  /** Bytes or group key are not those that were published. */
  readonly changed: string[];
  /** Arrived before an earlier event of the same key was delivered. */
  readonly reordered: string[];
  /** Answered with 2xx more often than once and the crashes that there were. */
  readonly repeated: string[];
}

/**
 * Compares what one subscription's endpoint saw with what it has to see: each of `expected` (in the order of
 * acceptance within a key), in order, with its bytes.
 *
 * @returns a line for each sort of fault, with its first examples; empty when nothing is wrong
 */
export function faultsOf(
  receiver: Receiver,
  subscription: string,
  expected: readonly Sample[],
  options: { readonly crashes?: number } = {},
): string[] {
  const samples = new Map(expected.map(sample => [sample.id, sample]));
  const positions = new Map<string, number>();
  for (const lane of Map.groupBy(expected, ({ groupKey }) => groupKey).values()) {
    for (const [position, { id }] of lane.entries()) positions.set(id, position);
  }
  const faults: Faults = { missing: [], unexpected: [], changed: [], reordered: [], repeated: [] };
  /** id → how often it was answered with 2xx. */
  const delivered = new Map<string, number>();
  /** group key → how many of its events, from the first, were delivered. */
  const progress = new Map<string, number>();
  for (const attempt of receiver.attempts) {
    if (attempt.subscription !== subscription) continue;
    const { id, groupKey, status } = attempt;
    const sample = samples.get(id);
    if (sample === undefined) {
      faults.unexpected.push(id);
      continue;
    }
    if (sample.sha256 !== attempt.sha256 || sample.groupKey !== groupKey) faults.changed.push(id);
    const position = positions.get(id) as number;
    const done = progress.get(groupKey) ?? 0;
    const before = delivered.get(id) ?? 0;
    // A repetition is in order until a later event of the key was sent.
    if (position !== (before > 0 ? done - 1 : done)) faults.reordered.push(id);
    if (typeof status !== 'number' || status >= 300) continue;
    delivered.set(id, before + 1);
    if (before > (options.crashes ?? 0)) faults.repeated.push(id);
    if (position === done) progress.set(groupKey, done + 1);
  }
  for (const { id } of expected) if (!delivered.has(id)) faults.missing.push(id);
  return Object.entries(faults).flatMap(([fault, ids]: [string, string[]]) =>
    ids.length === 0 ? [] : [`${subscription}: ${ids.length} ${fault}, as ${ids.slice(0, 5).join(', ')}`],
  );
}

/** What Redis holds of one subscription. */
export interface InboxState {
  /** References that were ever routed, oldest first; group keys. */
  readonly routed: readonly { readonly id: string; readonly groupKey: string }[];
  readonly open: number;
  readonly claimed: number;
  /** The subscription's own counters, by name: routed, delivered, dead, expired. */
  readonly counters: Readonly<Record<string, number>>;
}

async function uidOf(cluster: Cluster, object: string, namespace: string): Promise<string> {
  return kubectl(cluster, ['get', object, '-n', namespace, '-o', 'jsonpath={.metadata.uid}']);
}

/** Reads the inbox of the subscription `name` in `partner` to an integration of `producer`: absent, `partner`. */
export async function readInbox(
  { cluster, redis }: { readonly cluster: Cluster; readonly redis: RedisServer },
  subscription: {
    readonly producer: string;
    readonly partner: string;
    readonly name: string;
    readonly integration?: string;
  },
): Promise<InboxState> {
  const { producer, partner, name } = subscription;
  const inc = generationOf(await uidOf(cluster, `subscription/${name}`, partner));
  if (IS_PARTS) {
    const queue = await kubectl(cluster, [
      'get',
      `subscription/${name}`,
      '-n',
      partner,
      '-o',
      'jsonpath={.spec.stream}',
    ]);
    const inbox = { sub: publicId('Subscription', partner, name), inc };
    return readInboxOfPart(redis.url, { tenant: tenantId(producer), queue }, inbox);
  }
  const integration = publicId('Integration', producer, subscription.integration ?? partner);
  const sub = publicId('Subscription', partner, name);
  const x = inboxKeys(integration, sub, inc);
  const entries = (await redis.command('XRANGE', x.log, '-', '+')) as [string, string[]][];
  const fields = (await redis.command('HGETALL', integrationKeys(integration).sub(sub))) as
    | string[]
    | Record<string, string>;
  return {
    routed: entries.map(([id, [, groupKey = '']]) => ({ id, groupKey })),
    open: Number(await redis.command('ZCARD', x.pending)),
    claimed: Number(await redis.command('HLEN', x.claims)),
    counters: Object.fromEntries(
      pairsOf(fields).flatMap(([field, value]) => (field.startsWith('n:') ? [[field.slice(2), Number(value)]] : [])),
    ),
  };
}

/** Traffic counters of a queue, summed over its hours: in, routed, notRouted, bytes, tokens, and r:<reason>. */
export async function readTraffic(
  redis: RedisServer,
  producer: string,
  queue: string,
): Promise<Readonly<Record<string, number>>> {
  const sums: Record<string, number> = {};
  const hour = Math.floor(Date.now() / 3_600_000);
  for (const key of [hour - 1, hour, hour + 1].map(queueKeys(tenantId(producer), queue).traffic)) {
    for (const [name, value] of pairsOf((await redis.command('HGETALL', key)) as string[])) {
      sums[name] = (sums[name] ?? 0) + Number(value);
    }
  }
  return sums;
}

/** How often events of a stream went nowhere in the last hour, by reason; without reasons that there were none of. */
export async function readReasons(
  { url }: RedisServer,
  producer: string,
  queue: string,
): Promise<Readonly<Record<string, number>>> {
  const redis = await connectRedis(url, createLogger({ level: 'silent' }));
  try {
    const reader = IS_PARTS ? createPartTrafficReader(redis) : createTrafficReader(redis);
    const sums: Record<string, number> = {};
    for (const { reasons } of await reader.readReasons(tenantId(producer), queue, '1h', Date.now()))
      for (const [reason, count] of Object.entries(reasons)) if (count > 0) sums[reason] = (sums[reason] ?? 0) + count;
    return sums;
  } finally {
    await redis.close();
  }
}

/** What the producer's series of the last day counts, all of its buckets together. */
export async function readSeries(redis: RedisServer, producer: string): Promise<Traffic> {
  const ring = RINGS['24h'];
  const window = windowOf(ring, Date.now());
  const fields = new Map(pairsOf((await redis.command('HGETALL', tenantKeys(tenantId(producer)).series)) as string[]));
  const sum = { eventsIn: 0, deliveries: 0, failures: 0, notRouted: 0, bytes: 0, tokens: 0 };
  for (const bucket of seriesOf(
    ring,
    window,
    slotsOf(ring, window).map(slot => fields.get(slot) ?? null),
  )) {
    for (const name of Object.keys(sum) as (keyof Traffic)[]) sum[name] += bucket[name];
  }
  return sum;
}

/** Events that lie in the queue of the stream. */
export async function queueLength(
  { cluster, redis }: { readonly cluster: Cluster; readonly redis: RedisServer },
  producer: string,
  name: string,
): Promise<number> {
  const gen = generationOf(await uidOf(cluster, `catalogstream/${name}`, producer));
  if (IS_PARTS) {
    const { log } = partKeys({ tenant: tenantId(producer), queue: name, gen, number: 0 });
    return Number(await redis.command('XLEN', log));
  }
  return Number(await redis.command('XLEN', queueKeys(tenantId(producer), name, gen).events));
}

/** HGETALL is a flat list over RESP2 and a map over RESP3. */
function pairsOf(reply: string[] | Readonly<Record<string, string>>): [string, string][] {
  if (!Array.isArray(reply)) return Object.entries(reply);
  return reply.flatMap((name, at) => (at % 2 === 0 ? [[name, reply[at + 1] ?? ''] as [string, string]] : []));
}
