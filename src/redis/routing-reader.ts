import { type EventMeta, parseEventMeta } from '../core/events/event-meta.ts';
import type { EventProgress } from '../core/events/event-state.ts';
import { refMs, refOfStreamId, streamIdOfRef } from '../core/ids/refs.ts';
import { YOUNG_MS } from '../core/routing/event-disposition.ts';
import type { NotRoutedReason } from '../core/routing/reasons.ts';
import { notedReason } from '../core/routing/told-reasons.ts';
import type { RedisClient, Reply } from './client.ts';
import { type PairReading, readPair } from './gate-reader.ts';
import { readProgress } from './inbox-reader.ts';
import { type InboxRef, inboxMember, parseInboxMember } from './inbox-store.ts';
import { hashOfEventId, ID_TTL_MS } from './ingress-store.ts';
import { BUCKET_MS, bucketOf, integrationKeys, queueKeys, tenantKeys } from './keys.ts';

/** A queue as routing finds it. */
export interface QueueReading {
  /** closing: it takes no events any more; missing: Redis has no state of it, or lost it. */
  readonly state: 'open' | 'closing' | 'missing';
  readonly gen: string;
  /** How far the router has come: `ms-seq`. */
  readonly cursor: string;
}

/** What Redis says of one integration, for one queue and one group key. Nothing here is told apart from what is lost. */
export interface GateReading extends Pick<PairReading, 'integration' | 'activated'> {
  /** missing: the tenant's state is. */
  readonly subscription: 'none' | 'open' | 'paused' | 'missing';
}

export interface FoundEvent {
  readonly ref: string;
  /** `ms-seq` */
  readonly id: string;
  readonly meta: EventMeta;
  /** Of its body. */
  readonly bytes: number;
}

/** What Redis knows about the disposition of an event for one integration. */
export interface DispositionReading {
  readonly subscription: { readonly id: string; readonly behindAt: string | undefined } | undefined;
  readonly progress: EventProgress | undefined;
  /** Since when its group key is active, ms; undefined: it is not. */
  readonly activatedSinceMs: number | undefined;
  readonly noted: NotRoutedReason | undefined;
}

/** Reads what decides about routing, and what was decided. Changes nothing. */
export interface RoutingReader {
  readonly readQueue: (tenant: string, queue: string) => Promise<QueueReading>;
  readonly readGate: (
    tenant: string,
    queue: QueueReading & { readonly name: string },
    integration: string,
    groupKey: string,
  ) => Promise<GateReading>;
  /**
   * An event of a queue by the id that the producer gave it; of several within 36 h, the youngest. Ids are remembered for
   * 24 h at least, refs as long as the event is kept.
   */
  readonly findEvent: (
    tenant: string,
    queue: string,
    wanted: { readonly eventId: string } | { readonly ref: string },
  ) => Promise<FoundEvent | undefined>;
  /** @param inbox of its subscription, where the router does not ask it any more: what went there before is told from it */
  readonly readDisposition: (
    tenant: string,
    queue: string,
    integration: string,
    event: { readonly ref: string; readonly groupKey: string },
    inbox?: InboxRef,
  ) => Promise<DispositionReading>;
}

const text = (reply: Reply | undefined): string | undefined => (typeof reply === 'string' ? reply : undefined);

export function createRoutingReader(redis: RedisClient, nowMs: () => number): RoutingReader {
  async function readQueue(tenant: string, queue: string): Promise<QueueReading> {
    const fields = ['ready', 'state', 'gen', 'cur'];
    const [ready, state, gen, cursor] = (await redis.call(
      'hmget',
      queueKeys(tenant, queue).meta,
      ...fields,
    )) as Reply[];
    return {
      state: ready !== '1' ? 'missing' : state === 'open' ? 'open' : 'closing',
      gen: text(gen) ?? '',
      cursor: text(cursor) ?? '0-0',
    };
  }

  /** Where its id was noted: the bucket of when it was accepted, or that of a clock that was set back. */
  async function refOfEventId(
    tenant: string,
    queue: string,
    gen: string,
    eventId: string,
  ): Promise<string | undefined> {
    const { ids } = queueKeys(tenant, queue, gen);
    const now = bucketOf(nowMs());
    const hash = hashOfEventId(eventId);
    const buckets = Array.from({ length: ID_TTL_MS / BUCKET_MS + 2 }, (_, i) => now + 1 - i);
    const found = await Promise.all(buckets.map(bucket => redis.call('hget', ids(bucket), hash)));
    const id = found.map(text).find(each => each !== undefined);
    return id === undefined ? undefined : refOfStreamId(id);
  }

  return {
    readQueue,

    async readGate(tenant, { name, gen }, integration, groupKey) {
      const i = integrationKeys(integration);
      const [pair, member] = await Promise.all([
        readPair(redis, tenant, integration, groupKey),
        redis.call('hget', tenantKeys(tenant).subs(name), integration),
      ]);
      const known = { integration: pair.integration, activated: pair.activated };
      if (pair.tenant === 'missing') return { ...known, subscription: 'missing' };
      if (typeof member !== 'string') return { ...known, subscription: 'none' };
      const { sub, inc } = parseInboxMember(`${integration}/${member}`);
      const fields = (await redis.call('hmget', i.sub(sub), 'inc', 'gen', 'route')) as Reply[];
      const [hasInc, hasGen, route] = fields;
      const current = hasInc === inc && hasGen === gen && route !== 'closed';
      return { ...known, subscription: !current ? 'none' : route === 'open' ? 'open' : 'paused' };
    },

    async findEvent(tenant, queue, wanted) {
      const { gen } = await readQueue(tenant, queue);
      const ref = 'ref' in wanted ? wanted.ref : await refOfEventId(tenant, queue, gen, wanted.eventId);
      if (ref === undefined) return undefined;
      const id = streamIdOfRef(ref);
      const [found] = (await redis.run('metas', [queueKeys(tenant, queue, gen).bodies], [id])) as [
        [meta?: string, groupKey?: string, bytes?: number],
      ];
      const [meta, groupKey = '', bytes = 0] = found;
      return meta === undefined ? undefined : { ref, id, meta: parseEventMeta(meta, groupKey, ref), bytes };
    },

    async readDisposition(tenant, queue, integration, { ref, groupKey }, former) {
      const q = queueKeys(tenant, queue);
      const [member, why, active] = await Promise.all([
        redis.call('hget', tenantKeys(tenant).subs(queue), integration),
        redis.call('hget', q.why(bucketOf(refMs(ref))), ref),
        redis.call('hget', integrationKeys(integration).act, groupKey),
      ]);
      const told = text(why) ?? '';
      const asked = typeof member === 'string' ? parseInboxMember(`${integration}/${member}`) : undefined;
      const inbox = asked ?? former;
      const [progress, behindAt, since] = await Promise.all([
        inbox === undefined ? undefined : readProgress(redis, inbox, ref),
        asked === undefined ? undefined : redis.call('hget', q.behind, inboxMember(asked)),
        asked === undefined ? undefined : redis.call('hget', integrationKeys(integration).sub(asked.sub), 'since'),
      ]);
      const subscribedMs = asked === undefined ? undefined : Number(since ?? 0);
      return {
        subscription: asked === undefined ? undefined : { id: asked.sub, behindAt: text(behindAt) },
        progress: progress?.answer === 'OK' ? progress.progress : undefined,
        activatedSinceMs: typeof active === 'string' ? Number(active) : undefined,
        noted: notedReason(told, integration, { routedBeforeMs: refMs(ref) + YOUNG_MS, subscribedMs }),
      };
    },
  };
}
