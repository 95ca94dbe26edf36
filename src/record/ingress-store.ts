import type { Simulation } from '../core/delivery/simulation.ts';
import type { StoredEventMeta } from '../core/events/event-meta.ts';
import type { QueueRoute } from '../core/routing/routes.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS, tenantKeys } from '../redis/keys.ts';

export interface IngressQueue {
  readonly gen: string;
  readonly cfgv: string;
  readonly state: 'open' | 'closing';
  readonly eventTypes: readonly string[];
  readonly contextHeaders: QueueRoute['contextHeaders'];
  /** The quota of the queue (in bytes of stored events), which is enforced by the store. */
  readonly maxBytes: number;
  readonly source: string;
  /** The account of the workspace (`acc_…`). Empty if there is no account. */
  readonly payer: string;
  /**
   * The number of events per second that each ingress replica will accept for this account. Undefined if there is no
   * limit.
   */
  readonly eventsPerSecond?: number | undefined;
  /** The number of bytes used by this stream's events when this was read. */
  readonly bytes: number;
}

export interface IngressEvent {
  readonly id: string;
  readonly type: string | undefined;
  readonly groupKey: string | undefined;
  readonly contentType: string | undefined;
  readonly traceparent: string | undefined;
  readonly forward: Record<string, string>;
  /** The attributes of a CloudEvent in binary mode. */
  readonly attributes?: Record<string, string>;
  readonly body: Buffer;
  /** The responses of the simulated endpoints. Only used for events of a sandbox run. */
  readonly simulation?: Simulation;
}

/** Used by ingress to read its configuration. Missing control state is `unavailable`, never "does not exist". */
export interface IngressReader {
  readonly readQueue: (tenant: string, queue: string) => Promise<IngressQueue | null | 'unavailable'>;
  /**
   * Returns the remaining validity of the key, in milliseconds. Infinity if the key does not expire, and 0 if it is
   * wrong.
   */
  readonly checkKey: (tenant: string, sha256: string) => Promise<number | 'unavailable'>;
}

/** Metadata in the stored format (JSON). Starts with the source if the producer didn't set an id. */
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

/** The fields read by ingress in the hash of a part. */
const READ_FIELDS = [
  'ready',
  'gen',
  'cfgv',
  'state',
  'eventTypes',
  'contextHeaders',
  'maxBytes',
  'source',
  'payer',
  'bytes',
  'eventsPerSecond',
];

/** Reads the configuration for ingress. `metaOf` returns the hash key for a queue or for its part. */
export function createIngressReader(
  redis: RedisClient,
  nowMs: () => number,
  alarm: (slot: string) => void,
  metaOf: (tenant: string, queue: string) => string,
): IngressReader {
  /**
   * A tenant without control state. A tenant is only unknown if there is a list of tenants that does not contain it.
   */
  async function unknownTenant(tenant: string): Promise<0 | 'unavailable'> {
    const [ready, known] = await Promise.all([
      redis.call('hget', CLUSTER_KEYS.meta, 'ready'),
      redis.call('sismember', CLUSTER_KEYS.tenants, tenant),
    ]);
    if (ready === '1' && known === 0) return 0;
    alarm(`t:${tenant}`);
    return 'unavailable';
  }

  return {
    async readQueue(tenant, queue) {
      const reply = (await redis.call('hmget', metaOf(tenant, queue), ...READ_FIELDS)) as (string | null)[];
      const [ready, gen, cfgv, state, eventTypes, contextHeaders, maxBytes, source, payer, bytes, perSecond] = reply;
      if (ready === '1') {
        return {
          gen: gen as string,
          cfgv: cfgv as string,
          state: state as IngressQueue['state'],
          eventTypes: JSON.parse(eventTypes as string) as string[],
          contextHeaders: JSON.parse(contextHeaders as string) as IngressQueue['contextHeaders'],
          maxBytes: Number(maxBytes),
          source: source as string,
          payer: payer ?? '',
          eventsPerSecond: perSecond == null ? undefined : Number(perSecond),
          bytes: Number(bytes ?? 0),
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
      const [ready, until] = (await redis.run('key', [t.meta, t.keys], [sha256])) as (string | null)[];
      if (ready !== '1') return unknownTenant(tenant);
      if (until == null) return 0;
      return until === '' ? Number.POSITIVE_INFINITY : Math.max(0, Number(until) - nowMs());
    },
  };
}
