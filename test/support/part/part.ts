import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { createAdvance } from '../../../src/part/catchup/advance.ts';
import {
  type Completion,
  createExchange,
  type ExchangeAnswer,
  type Holding,
} from '../../../src/part/claims/exchange.ts';
import { createEvict, createReadOwnClaims } from '../../../src/part/claims/held-claims.ts';
import { type Claim, type ClaimedEvent, isAlone } from '../../../src/part/claims/message.ts';
import { createGate, type GateChange } from '../../../src/part/gate/gate.ts';
import type { SubscriptionRow } from '../../../src/part/gate/subscription-row.ts';
import { type Part, partKeys, recordsBucketOf, slotOf, unpackSlots } from '../../../src/part/keys.ts';
import { msOfRef, NO_REF } from '../../../src/part/lanes/ref.ts';
import { createIngest, type IngestAnswer, type PartEvent } from '../../../src/part/log/ingest.ts';
import { type DeliveryRecord, fullChunks, parseRecords, recordsField } from '../../../src/part/records/record.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import type { NamedScript } from '../../../src/redis/named-scripts.ts';
import { withClock } from './clock.ts';

export const START_MS = 1_790_000_000_000;
export const READY_MS = 3_000;

const READ_LOG: NamedScript = {
  name: 'read-log',
  source: "#!lua flags=no-writes\nreturn redis.call('XRANGE', KEYS[1], '-', '+')",
  keys: ['log'],
  listedKeys: undefined,
  args: [],
  takesMore: false,
};

export function row(fields: Partial<SubscriptionRow> = {}): SubscriptionRow {
  return {
    route: 'open',
    send: 'open',
    unordered: false,
    cap: 8,
    since: NO_REF,
    cfgv: 'v1',
    integration: 'int_x',
    ...fields,
  };
}

export function event(groupKey: string, fields: Partial<PartEvent> = {}): PartEvent {
  return { groupKey, meta: '{"s":"/x"}', body: Buffer.from('body'), ...fields };
}

export type Exchanged = Exclude<ExchangeAnswer, { answer: 'GONE' }>;

/** The differences between a completion and an attempt that took 5 ms. Without a latency, no request was sent. */
type EndOfClaim = Partial<Omit<Completion, 'latencyMs'>> & { readonly latencyMs?: number | undefined };

/** A dispatcher, as seen by Redis. It does not send any requests. */
export interface TestDispatcher {
  readonly name: string;
  /** The claims by lane. */
  readonly held: Map<string, Claim>;
  /** The completions for the next exchange. */
  readonly ended: Completion[];
  /** Takes the claims from a push or a response. */
  readonly take: (events: readonly ClaimedEvent[]) => Claim[];
  /** Ends this claim in the next exchange. */
  readonly end: (claim: Pick<Claim, 'lane' | 'ref'>, outcome?: Completion['outcome'], fields?: EndOfClaim) => void;
  readonly holding: (fields?: Partial<Holding>) => Holding;
  /** Runs one exchange and returns the response and the claims. */
  readonly exchange: (most?: number, fields?: Partial<Holding>) => Promise<Exchanged & { readonly claims: Claim[] }>;
  /** The number of pushes according to the last response or push. */
  readonly counts: { pushed: number; bytes: number };
}

/** A separate part with its own clock. */
export function createTestPart(redis: RedisClient, place: Partial<Pick<Part, 'tenant' | 'queue'>> = {}) {
  const tenant = `ten_${randomBytes(8).toString('hex')}`;
  const part: Part = { tenant, queue: 'orders', gen: 'gen1', number: 0, ...place };
  const keys = partKeys(part);
  const clock = { ms: START_MS };
  const client = withClock(redis, () => clock.ms);
  const gate = createGate(client);
  const ingest = createIngest(client, () => clock.ms);
  const exchange = createExchange(client);
  const evict = createEvict(client);
  const advance = createAdvance(client);
  const readOwnClaims = createReadOwnClaims(client);
  const slot = (name: string) => slotOf(name, 'inc1');
  let calls = 0;

  async function change(...changes: GateChange[]) {
    const answer = await gate(part, 1, changes);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    return answer;
  }

  return {
    part,
    keys,
    clock,
    client,
    gate,
    change,
    slot,
    /** Runs once, or until there is no more work. Returns the number of routed references. */
    advance: () => advance(part),
    async advanceAll(): Promise<number> {
      let references = 0;
      for (let calls = 0; calls < 200; calls++) {
        const answer = await advance(part);
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        references += answer.references;
        if (!answer.more) return references;
      }
      throw new Error('there is always more work');
    },
    evict: (name: string) => evict(part, name),
    own: (name: string) => readOwnClaims(part, name),
    /** A part that accepts events, with subscriptions for which these group keys are active. */
    async setUp(subs: Subscriptions, groupKeys: readonly string[]) {
      const meta = { cfgv: 'c1', state: 'open', maxBytes: String(2 ** 40), ready: '1' } as const;
      await change(
        { kind: 'begin' },
        { kind: 'marker' },
        ...Object.entries(subs).map(([name, fields]) => ({ kind: 'row' as const, slot: slot(name), row: row(fields) })),
        ...Object.keys(subs).flatMap(name =>
          groupKeys.map(groupKey => ({ kind: 'on' as const, slot: slot(name), groupKey })),
        ),
        ...Object.entries(meta).map(([field, value]) => ({ kind: 'meta' as const, field: field as 'ready', value })),
      );
    },
    setRow: (name: string, fields: Partial<SubscriptionRow>, how?: 'behind' | 'skip') =>
      change({ kind: 'row', slot: slot(name), row: row(fields), ...(how && { how }) }),
    activate: (name: string, groupKey: string) => change({ kind: 'on', slot: slot(name), groupKey }),
    deactivate: (name: string, groupKey: string) => change({ kind: 'off', slot: slot(name), groupKey }),
    ingest: (...events: PartEvent[]): Promise<IngestAnswer> => ingest(part, 'c1', events),
    /** Stores one event for each group key and returns the refs. */
    async send(...groupKeys: string[]): Promise<string[]> {
      const answer = await ingest(
        part,
        'c1',
        groupKeys.map(groupKey => event(groupKey)),
      );
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      return answer.events.map(each => {
        if (!('ref' in each)) throw new Error(each.answer);
        return each.ref;
      });
    },
    dispatcher(name: string): TestDispatcher {
      const held = new Map<string, Claim>();
      const ended: Completion[] = [];
      const counts = { pushed: 0, bytes: 0 };
      const take = (events: readonly ClaimedEvent[]) => {
        const claims = events.flatMap(each => each.claims);
        for (const claim of claims) held.set(claim.lane, claim);
        return claims;
      };
      const holding = (fields: Partial<Holding> = {}): Holding => ({
        dispatcher: name,
        number: ++calls,
        readyMs: READY_MS,
        limit: 1_000,
        held: held.size + ended.length,
        holdsAlone: [...held.values()].some(isAlone),
        ...counts,
        roomBytes: 4 * 2 ** 20,
        ...fields,
      });
      return {
        name,
        held,
        ended,
        take,
        counts,
        holding,
        end({ lane, ref }, outcome = 'delivered', fields = {}) {
          if (held.get(lane)?.ref === ref) held.delete(lane);
          const { latencyMs, ...rest } = { latencyMs: 5, ...fields };
          ended.push({ lane, ref, outcome, reason: '200', ...(latencyMs !== undefined && { latencyMs }), ...rest });
        },
        async exchange(most = 64, fields = {}) {
          const answer = await exchange(part, holding(fields), ended.splice(0), most);
          if (answer.answer === 'GONE') throw new Error('GONE');
          counts.pushed = answer.pushed;
          counts.bytes = answer.bytes;
          return { ...answer, claims: take(answer.events) };
        },
      };
    },
    /** Returns the counts: in flight, routed, waiting, delivered, dead, expired. */
    async counts(name: string): Promise<number[]> {
      const text = (await redis.call('hget', keys.counts, slot(name))) as string | null;
      return (text ?? '0 0 0 0 0 0').split(' ').slice(0, 6).map(Number);
    },
    async records(ref: string, replay?: string): Promise<DeliveryRecord[]> {
      const key = keys.records(recordsBucketOf(msOfRef(ref)));
      const [flat] = (await redis.runBuffers('hashes', [key], [])) as [Buffer[]];
      const chunks = new Map(flat.flatMap((name, i) => (i % 2 === 0 ? [[String(name), flat[i + 1] as Buffer]] : [])));
      const last = chunks.get(recordsField(ref, replay));
      if (last === undefined) return [];
      const full = fullChunks(recordsField(ref, replay), last).map(field => chunks.get(field) ?? Buffer.alloc(0));
      return [...full, last].flatMap(chunk => parseRecords(ref, chunk));
    },
    /** The number of bytes in each record chunk of an event. */
    async chunkSizes(ref: string): Promise<number[]> {
      const records = keys.records(recordsBucketOf(msOfRef(ref)));
      const [flat] = (await redis.runBuffers('hashes', [records], [])) as [Buffer[]];
      return flat.flatMap((chunk, i) => (i % 2 === 1 && (flat[i - 1] as Buffer).length >= 15 ? [chunk.length] : []));
    },
    async log() {
      const entries = (await redis.runNamedBuffers(READ_LOG, { keys, args: {} })) as [Buffer, Buffer[]][];
      return entries.map(([id, fields]) => {
        const [groupKey, meta, size, cost, slots] = [1, 3, 5, 7, 9].map(at => fields[at] as Buffer);
        return {
          id: String(id),
          groupKey: String(groupKey),
          meta: String(meta),
          size: Number(size),
          cost: Number(cost),
          slots: unpackSlots(slots as Buffer),
        };
      });
    },
    hash: (name: 'meta' | 'claims' | 'lanes' | 'positions' | 'tries' | 'off' | 'ready' | 'health' | 'keys' | 'subs') =>
      redis.readHash(keys[name]),
    members: async (name: 'pending' | 'waiting' | 'turns' | 'retries' | 'final') =>
      (await redis.call('zrange', keys[name], 0, -1)) as string[],
  };
}

export type TestPart = ReturnType<typeof createTestPart>;

/** The rows of subscriptions by name, without fields that have their default value. */
type Subscriptions = Readonly<Record<string, Partial<SubscriptionRow>>>;

/** Sets up a part with subscriptions that are active for these group keys, and one dispatcher. */
export async function startPart(redis: RedisClient, subs: Subscriptions = { a: {} }, groupKeys = ['k', 'l', 'm', 'n']) {
  const t = createTestPart(redis);
  await t.setUp(subs, groupKeys);
  const keyOf = (lane: string) => lane.slice(8).split('\0')[0];
  return { t, d: t.dispatcher('d1'), keyOf };
}

/** Expects that nothing is open, i.e. there are no keys that could contain an event or a claim. */
export async function expectEmpty(redis: RedisClient, { keys }: TestPart): Promise<void> {
  const { claims, lanes, pending, waiting, retries, tries, off } = keys;
  expect(await redis.call('exists', claims, lanes, pending, waiting, retries, tries, off)).toBe(0);
}
