import { hash } from 'node:crypto';
import type { Simulation } from '../core/delivery/simulation.ts';
import type { StoredEventMeta } from '../core/events/event-meta.ts';
import { refOfStreamId } from '../core/ids/refs.ts';
import type { QueueRoute } from '../core/routing/routes.ts';
import type { Argument, RedisClient } from './client.ts';
import { BUCKET_MS, bucketOf, CLUSTER_KEYS, queueKeys, tenantKeys } from './keys.ts';

const DAY_MS = 86_400_000;
/** Event-id hashes live as long as their bucket can matter: a day of dedupe, and the bucket's own width. */
export const ID_TTL_MS = DAY_MS + 2 * BUCKET_MS;
/** Where an id of the last 24 h may lie, besides the bucket of now; the next one when the clock was set back. */
const OTHER_BUCKETS = [-1, -2, -3, -4, 1];

export interface IngressQueue {
  readonly gen: string;
  readonly cfgv: string;
  readonly state: 'open' | 'closing';
  readonly eventTypes: readonly string[];
  readonly contextHeaders: QueueRoute['contextHeaders'];
  /** Quota of the queue, in bytes of stored events; kept by the store. */
  readonly maxBytes: number;
  readonly source: string;
}

export interface IngressEvent {
  readonly id: string;
  readonly type: string | undefined;
  readonly groupKey: string | undefined;
  readonly contentType: string | undefined;
  readonly traceparent: string | undefined;
  readonly forward: Record<string, string>;
  /** Of a CloudEvent in binary mode: its attributes. */
  readonly attributes?: Record<string, string>;
  readonly body: Buffer;
  /** Of an event of a sandbox run: what its simulated endpoints answer. */
  readonly simulation?: Simulation;
}

export type IngestOutcome =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  | { readonly answer: 'STALE' | 'CLOSED' | 'FULL' | 'GONE' };

/** What became of one call. */
export interface Ingested {
  /** One for each event. */
  readonly outcomes: readonly IngestOutcome[];
  /** A router is at work on the queue and will see what was stored: its hint need not be lowered. */
  readonly awake: boolean;
}

/** What ingress reads. Missing control state is `unavailable`, never "does not exist". */
export interface IngressReader {
  readonly readQueue: (tenant: string, queue: string) => Promise<IngressQueue | null | 'unavailable'>;
  readonly checkKey: (tenant: string, sha256: string) => Promise<boolean | 'unavailable'>;
}

/** What ingress asks of Redis. */
export interface IngressOperations extends IngressReader {
  /** Stores up to 64 events, each once per id within 24 h. */
  readonly ingest: (
    tenant: string,
    queue: string,
    config: Pick<IngressQueue, 'gen' | 'cfgv' | 'source'>,
    events: readonly IngressEvent[],
  ) => Promise<Ingested>;
}

/** Metadata as they are stored, JSON. Those of an event without an id of its own begin with its source. */
export function storedMeta(
  event: Omit<IngressEvent, 'id'> & { readonly id: string | undefined },
  source: string,
): string {
  const meta: StoredEventMeta = event.id === undefined ? { s: source } : { i: event.id, s: source };
  if (event.type !== undefined) meta.t = event.type;
  if (event.contentType !== undefined) meta.c = event.contentType;
  if (event.traceparent !== undefined) meta.p = event.traceparent;
  for (const _name in event.forward) {
    meta.f = event.forward;
    break;
  }
  if (event.attributes !== undefined) meta.a = event.attributes;
  if (event.simulation !== undefined) meta.x = event.simulation;
  return JSON.stringify(meta);
}

/** 16 bytes of SHA-256 of the event id: what dedupe compares. By way of hex, which takes a quarter of the time. */
export function hashOfEventId(id: string): Buffer {
  return Buffer.from(hash('sha256', id, 'hex').slice(0, 32), 'hex');
}

/** Reads what ingress is configured by. `metaOf` is the key of the hash of a queue, or of the part in its place. */
export function createIngressReader(
  redis: RedisClient,
  nowMs: () => number,
  alarm: (slot: string) => void,
  metaOf: (tenant: string, queue: string) => string,
): IngressReader {
  /** A tenant without control state: unknown only if the cluster's list of tenants is there and does not name it. */
  async function unknownTenant(tenant: string): Promise<false | 'unavailable'> {
    const [ready, known] = await Promise.all([
      redis.call('hget', CLUSTER_KEYS.meta, 'ready'),
      redis.call('sismember', CLUSTER_KEYS.tenants, tenant),
    ]);
    if (ready === '1' && known === 0) return false;
    alarm(`t:${tenant}`);
    return 'unavailable';
  }

  return {
    async readQueue(tenant, queue) {
      const fields = ['ready', 'gen', 'cfgv', 'state', 'eventTypes', 'contextHeaders', 'maxBytes', 'source'];
      const reply = (await redis.call('hmget', metaOf(tenant, queue), ...fields)) as (string | null)[];
      const [ready, gen, cfgv, state, eventTypes, contextHeaders, maxBytes, source] = reply;
      if (ready === '1') {
        return {
          gen: gen as string,
          cfgv: cfgv as string,
          state: state as IngressQueue['state'],
          eventTypes: JSON.parse(eventTypes as string) as string[],
          contextHeaders: JSON.parse(contextHeaders as string) as IngressQueue['contextHeaders'],
          maxBytes: Number(maxBytes),
          source: source as string,
        };
      }
      const t = tenantKeys(tenant);
      const [tenantReady, known] = await Promise.all([
        redis.call('hget', t.meta, 'ready'),
        redis.call('hexists', t.index, `q:${queue}`),
      ]);
      if (tenantReady === '1' && known === 0) return null;
      alarm(`q:${tenant}:${queue}`);
      return 'unavailable';
    },

    async checkKey(tenant, sha256) {
      const t = tenantKeys(tenant);
      const [ready, until] = await Promise.all([
        redis.call('hget', t.meta, 'ready'),
        redis.call('hget', t.keys, sha256),
      ]);
      if (ready !== '1') return unknownTenant(tenant);
      return until !== null && (until === '' || Number(until) > nowMs());
    },
  };
}

export function createIngressOperations(
  redis: RedisClient,
  nowMs: () => number,
  alarm: (slot: string) => void,
): IngressOperations {
  return {
    ...createIngressReader(redis, nowMs, alarm, (tenant, queue) => queueKeys(tenant, queue).meta),

    async ingest(tenant, queue, config, events) {
      const now = nowMs();
      const q = queueKeys(tenant, queue, config.gen);
      const bucket = bucketOf(now);
      const keys = [q.meta, q.events, q.bodies, q.ids(bucket), ...OTHER_BUCKETS.map(offset => q.ids(bucket + offset))];
      const args: Argument[] = [now, config.cfgv, ID_TTL_MS];
      for (const event of events) {
        args.push(hashOfEventId(event.id), event.groupKey ?? '', storedMeta(event, config.source), event.body);
      }
      const words = ((await redis.run('ingest', keys, args)) as string).split('\n');
      const [answer, awake] = words;
      if (answer !== 'OK') {
        const refused = { answer: answer as 'STALE' | 'CLOSED' | 'GONE' };
        return { awake: false, outcomes: events.map(() => refused) };
      }
      const outcomes = events.map((_event, i): IngestOutcome => {
        const word = words[2 * i + 2] as 'OK' | 'DUP' | 'FULL';
        return word === 'FULL' ? { answer: word } : { answer: word, ref: refOfStreamId(words[2 * i + 3] as string) };
      });
      return { awake: awake === '1', outcomes };
    },
  };
}
