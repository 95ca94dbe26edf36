import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { RINGS, seriesOf, slotsOf, type Traffic, windowOf } from '../../../src/core/events/series.ts';
import { generationOf, publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { readPart } from '../../../src/part/inbox/find-part.ts';
import { createPartInboxReader } from '../../../src/part/inbox/inbox-reader.ts';
import { partKeys, slotOf } from '../../../src/part/keys.ts';
import { createPartTrafficReader } from '../../../src/part/reasons/traffic-reader.ts';
import { createReadSlots } from '../../../src/part/state/slots.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { tenantKeys } from '../../../src/redis/keys.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import type { RedisServer } from '../../support/redis/server.ts';
import type { Sample } from './publisher.ts';
import type { Receiver } from './receiver.ts';
import { clientOf } from './shared-client.ts';

/** All lists are empty if there are no errors. */
interface Faults {
  /** Expected events that never received a 2xx response. */
  readonly missing: string[];
  /** Attempts for events that must not arrive here. */
  readonly unexpected: string[];
  /** Events whose bytes or group key differ from the published event. */
  readonly changed: string[];
  /** Events that arrived before an earlier event with the same key was delivered. */
  readonly reordered: string[];
  /** Events that received more than one 2xx response, in addition to one for each crash. */
  readonly repeated: string[];
}

/**
 * Compares the requests to the endpoint of a subscription with the expected events: each event in `expected` (in the
 * order of acceptance within a key) must arrive in order, with the same bytes.
 *
 * @returns one line for each kind of error with its first examples, or an empty list if there are none
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
  /** The number of 2xx responses, by id. */
  const delivered = new Map<string, number>();
  /** The number of delivered events, starting with the first one, by group key. */
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
    // A repetition is in order until a later event with the same key is sent.
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

/** The data of a subscription in Redis. */
export interface InboxState {
  /** All routed references (oldest first), and their group keys. */
  readonly routed: readonly { readonly id: string; readonly groupKey: string }[];
  readonly open: number;
  readonly claimed: number;
  /** The subscription's own counters, by name: routed, delivered, dead, expired. */
  readonly counters: Readonly<Record<string, number>>;
}

interface Found {
  readonly metadata: { readonly uid: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

async function find(cluster: Cluster, kind: KindName, namespace: string, name: string): Promise<Found> {
  const found = await clientOf(cluster).get<Found>(resourceOf(kind), { namespace, name });
  if (found === undefined) throw new Error(`there is no ${kind} ${namespace}/${name}`);
  return found;
}

const OPEN = ['pending', 'inflight', 'retrying'] as const;
const PAGE = 250;

/** Calls `read` using a separate connection. */
async function withRedis<T>({ url }: RedisServer, read: (redis: RedisClient) => Promise<T>): Promise<T> {
  const redis = await connectRedis(url, createLogger({ level: 'silent' }));
  try {
    return await read(redis);
  } finally {
    await redis.close();
  }
}

/** Reads the inbox of the subscription `name` in `partner` from the part of its stream. */
export async function readInbox(
  { cluster, redis }: { readonly cluster: Cluster; readonly redis: RedisServer },
  { producer, partner, name }: { readonly producer: string; readonly partner: string; readonly name: string },
): Promise<InboxState> {
  const { metadata, spec } = await find(cluster, 'Subscription', partner, name);
  const inbox = { sub: publicId('Subscription', partner, name), inc: generationOf(metadata.uid) };
  const queue = String(spec['stream']);
  return withRedis(redis, client => readState(client, { tenant: tenantId(producer), queue }, inbox));
}

async function readState(
  redis: RedisClient,
  { tenant, queue }: { readonly tenant: string; readonly queue: string },
  { sub, inc }: { readonly sub: string; readonly inc: string },
): Promise<InboxState> {
  const part = await readPart(redis, tenant, queue);
  if (part === undefined) throw new Error(`${queue} has no part`);
  const slot = slotOf(sub, inc);
  const reader = createPartInboxReader(redis, async () => ({ part, slot }));
  const routed: { id: string; groupKey: string }[] = [];
  let open = 0;
  let claimed = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await reader.list({ integration: '', sub, inc }, { limit: PAGE, ...(cursor && { cursor }) });
    if (page.answer !== 'OK') throw new Error(page.answer);
    for (const { ref, replayId, groupKey = '', progress } of page.events) {
      if (replayId === undefined) routed.push({ id: ref, groupKey });
      if (OPEN.some(state => state === progress?.state)) open++;
      if (progress?.state === 'inflight') claimed++;
    }
    cursor = page.cursor;
  }
  const [state] = await createReadSlots(redis)(part, [slot]);
  const counters = Object.entries(state?.deliveries ?? {}).flatMap(([field, value]) =>
    field.startsWith('n:') && Number(value) > 0 ? [[field.slice(2), Number(value)] as const] : [],
  );
  return { routed, open, claimed, counters: Object.fromEntries(counters) };
}

/**
 * Returns the number of events of a stream in the last hour that were not routed, by reason. Does not include reasons
 * without events.
 */
export async function readReasons(
  redis: RedisServer,
  producer: string,
  queue: string,
): Promise<Readonly<Record<string, number>>> {
  return withRedis(redis, async client => {
    const reader = createPartTrafficReader(client);
    const sums: Record<string, number> = {};
    for (const { reasons } of await reader.readReasons(tenantId(producer), queue, '1h', Date.now()))
      for (const [reason, count] of Object.entries(reasons)) if (count > 0) sums[reason] = (sums[reason] ?? 0) + count;
    return sums;
  });
}

/** Returns the total of all buckets in the producer's series for the last day. */
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

/** Returns the events that are stored in the part of the stream. */
export async function queueLength(
  { cluster, redis }: { readonly cluster: Cluster; readonly redis: RedisServer },
  producer: string,
  name: string,
): Promise<number> {
  const { metadata } = await find(cluster, 'CatalogStream', producer, name);
  const gen = generationOf(metadata.uid);
  const { log } = partKeys({ tenant: tenantId(producer), queue: name, gen, number: 0 });
  return Number(await redis.command('XLEN', log));
}

/** HGETALL returns a flat list with RESP2 and a map with RESP3. */
function pairsOf(reply: string[] | Readonly<Record<string, string>>): [string, string][] {
  if (!Array.isArray(reply)) return Object.entries(reply);
  return reply.flatMap((name, at) => (at % 2 === 0 ? [[name, reply[at + 1] ?? ''] as [string, string]] : []));
}
