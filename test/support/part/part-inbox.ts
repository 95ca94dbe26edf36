import { createReplays } from '../../../src/accounts/replays.ts';
import type { Hint } from '../../../src/hints/hints.ts';
import type { Completion } from '../../../src/part/claims/exchange.ts';
import type { Claim } from '../../../src/part/claims/message.ts';
import { createFindSlot, type PartClient } from '../../../src/part/inbox/find-part.ts';
import { createPartInboxReader } from '../../../src/part/inbox/inbox-reader.ts';
import { inboxRefOf, partRefOf } from '../../../src/part/inbox/ref-names.ts';
import { createPartInboxOperations } from '../../../src/part/owner/operations.ts';
import { createPartInboxRecovery } from '../../../src/part/owner/recovery.ts';
import { createPartReplayInboxes } from '../../../src/part/owner/replays.ts';
import { createControlRecord } from '../../../src/record/control-store.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import { createTestPart, event, READY_MS, row } from './part.ts';

/** The start time of inbox tests. */
const INBOX_START_MS = 1_800_000_000_000;

/** Settings with which claims are only returned in responses. */
export const NOT_PUSHED = { roomBytes: 0 };

/** The subscription settings used by inbox tests. */
export interface InboxShort {
  readonly sub?: {
    readonly route?: 'open' | 'paused' | 'closed';
    readonly send?: 'open' | 'held';
    readonly endpoint?: string;
    readonly unordered?: boolean;
    readonly cap?: number;
  };
}

/** An attempt's result: like `Completion`, with the reason and latency as a single text. */
export interface EndOfAttempt extends Pick<Completion, 'dueMs' | 'responseBody' | 'responseTruncated'> {
  readonly outcome?: Completion['outcome'];
  /** `<outcome> <ms> <attempts> <reason> <latency ms, or - without an attempt>` */
  readonly record?: string;
  /** `<ms>,<reason>,<latency ms>` */
  readonly attempt?: string;
}

/** Returns the reason and latency of a record or an attempt. */
function noteOf({ record, attempt }: EndOfAttempt): { reason: string; latencyMs: number | undefined } {
  const [reason = '204', latency = '3'] = record?.split(' ').slice(3) ?? attempt?.split(',').slice(1) ?? [];
  return { reason, latencyMs: latency === '-' ? undefined : Number(latency) };
}

/** The inbox of a subscription in a separate part. */
export async function createPartInbox(
  redis: RedisClient,
  { sub = {} }: InboxShort = {},
  groupKeys: readonly string[] = ['a', 'b', 'c'],
) {
  const t = createTestPart(redis);
  t.clock.ms = INBOX_START_MS;
  const client: PartClient = { ...redis, ...t.client };
  const inbox = { integration: 'int_x', sub: 'sub_x0123456789abcdefghj', inc: 'inc1' };
  const name = inbox.sub;
  const slot = t.slot(name);
  const d = t.dispatcher('d1');
  const fieldsOf = ({
    route = 'open',
    send = 'open',
    unordered = false,
    cap = 64,
  }: NonNullable<InboxShort['sub']>) => ({
    route,
    send,
    unordered,
    cap,
  });
  const say = async ({ sub: next = {} }: InboxShort) => {
    const sealed = (next.endpoint ?? 'sealed') === '' ? '' : 'sealed';
    await t.change(
      { kind: 'endpoint', slot, sealed },
      { kind: 'row', slot, row: row({ ...fieldsOf({ ...sub, ...next }), integration: inbox.integration }) },
    );
  };
  await t.setUp({ [name]: fieldsOf(sub) }, groupKeys);
  await say({ sub });
  /** The account that pays for replays, which is not the producer's. */
  const payer = `acc_${t.part.tenant.slice(4)}own`;
  const sweeps: Hint[] = [];
  const findSlot = createFindSlot(client, ({ integration }) => (integration === 'int_x' ? t.part : undefined));

  /** Claims all available events, and returns lanes without their slot, and refs as used in an inbox. */
  async function claim(room = 64) {
    const { claims } = await d.exchange(room, NOT_PUSHED);
    return claims.map(each => ({ ...each, lane: each.lane.slice(8), ref: inboxRefOf(each.ref) }));
  }
  async function end(
    { lane, ref, replay }: Pick<Claim, 'lane' | 'ref'> & { replay?: string | undefined },
    change: EndOfAttempt = {},
  ) {
    void replay;
    const { outcome = 'delivered', dueMs, responseBody, responseTruncated } = change;
    d.end({ lane: slot + lane, ref: partRefOf(ref) as string }, outcome, {
      ...noteOf(change),
      ...(dueMs === undefined ? {} : { dueMs }),
      ...(responseBody && { responseBody }),
      ...(responseTruncated && { responseTruncated }),
    });
    const { answers } = await d.exchange(0, NOT_PUSHED);
    return answers[0];
  }
  const forgive = () => redis.call('hdel', t.keys.health, slot);

  return {
    t: {
      ...t,
      nowMs: () => t.clock.ms,
      activate: (_of: string, groupKey: string) => t.activate(name, groupKey),
      deactivate: (_of: string, groupKey: string) => t.deactivate(name, groupKey),
    },
    part: t,
    d,
    inbox,
    slot,
    client,
    findSlot,
    forgive,
    claim,
    end,
    say,
    reader: createPartInboxReader(client, findSlot),
    operations: createPartInboxOperations(client, findSlot),
    recovery: createPartInboxRecovery(client, findSlot, 10),
    payer,
    sweeps,
    replays: createReplays({
      redis,
      nowMs: () => t.clock.ms,
      lowerAccounts: async hints => void sweeps.push(...hints),
      inboxes: createPartReplayInboxes(client, findSlot),
      chunkEvents: 2,
      reclaimTokens: async () => false,
    }),
    setAccount: (plan: 'Free' | 'Metered', included: number) =>
      createControlRecord(redis).setAccount(1, payer, plan, included),
    usedTokens: async () => Number((await redis.readHash(accountKeys(payer).meta)).used ?? 0),
    /** Stores and routes one event for each group key and returns their refs. */
    publish: async (keys: readonly string[], body = 'body'): Promise<string[]> => {
      const answer = await t.ingest(...keys.map(groupKey => event(groupKey, { body: Buffer.from(body) })));
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      return answer.events.map(each => {
        if (!('ref' in each)) throw new Error(each.answer);
        return inboxRefOf(each.ref);
      });
    },
    /**
     * Ends all due attempts one by one with the result of `change`. Returns the lane and ref of each of them, in order.
     */
    drain: async (change: EndOfAttempt = {}): Promise<[lane: string, ref: string][]> => {
      const ended: [string, string][] = [];
      for (let claims = await claim(); claims.length > 0; claims = await claim()) {
        for (const each of claims) {
          await end(each, change);
          if (change.outcome !== undefined) await forgive();
          ended.push([each.lane, each.ref]);
        }
      }
      return ended;
    },
    /** Returns the subscription's counts, which must add up (invariant 13). */
    count: async (): Promise<Readonly<Record<string, number>>> => {
      const [inflight = 0, routed = 0, , delivered = 0, dead = 0, expired = 0] = await t.counts(name);
      const text = (await redis.call('hget', t.keys.counts, slot)) as string | null;
      const [skipped = 0, replayed = 0] = (text ?? '').split(' ').slice(6).map(Number);
      const isCounted = (lane: string) => lane.startsWith(slot) && lane.length > 8 && lane[8] !== '\0';
      const claims = Object.entries(await t.hash('claims')).filter(([lane]) => lane.startsWith(slot));
      if (claims.length !== inflight) throw new Error(`${claims.length} claims, ${inflight} in flight`);
      const held = claims.filter(([lane, claim]) => isCounted(lane) && !claim.startsWith('x')).length;
      const open = (await t.members('pending')).filter(isCounted).length + held;
      const counts = { routed, replayed, delivered, dead, skipped, expired };
      if (routed + replayed !== open + delivered + dead + skipped + expired) {
        throw new Error(`the counts do not add up: ${JSON.stringify(counts)}, ${open} open`);
      }
      return { ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)), open };
    },
    /** Makes all claims of the dispatcher expire. */
    lapse: async () => {
      t.clock.ms += READY_MS;
      d.held.clear();
      await t.evict(d.name);
    },
  };
}

export type PartInbox = Awaited<ReturnType<typeof createPartInbox>>;
