import type { AttemptOutcome } from '../api/delivery-status.ts';
import { refMs, refOfStreamId } from '../core/ids/refs.ts';
import type { Argument, RedisClient, Reply } from './client.ts';
import { type DeliveryNews, parseDeliveryNews } from './delivery-news.ts';
import { bodiesOf } from './failure-bodies.ts';
import { BUCKET_MS, bucketOf, inboxKeys, integrationKeys, queueKeys } from './keys.ts';
import { type LedgerTotal, ledgerTotal } from './ledger-store.ts';

/** One subscription's inbox; written `int/sub.inc` in hints, `behind` and `wake`. */
export interface InboxRef {
  readonly integration: string;
  readonly sub: string;
  readonly inc: string;
}

export function inboxMember({ integration, sub, inc }: InboxRef): string {
  return `${integration}/${sub}.${inc}`;
}

export function parseInboxMember(member: string): InboxRef {
  const slash = member.indexOf('/');
  const dot = member.indexOf('.', slash);
  return { integration: member.slice(0, slash), sub: member.slice(slash + 1, dot), inc: member.slice(dot + 1) };
}

/** The replay that a lane is of (`lib/lanes.lua`); undefined for a first delivery. */
export function replayOf(lane: string): string | undefined {
  const at = lane.indexOf('\x01');
  if (at < 0) return undefined;
  const end = lane.indexOf('\0', at);
  return lane.slice(at + 1, end < 0 ? undefined : end);
}

/** Replay ids are chosen by who replays: `[A-Za-z0-9_-]`, 1 to 64. */
export function isReplayId(text: string): boolean {
  return /^[\w-]{1,64}$/.test(text);
}

export interface RouteItem {
  readonly ref: string;
  readonly id: string;
  readonly groupKey: string;
  readonly tokens: number;
}

/**
 * `flags` has one letter per item: r routed, d routed before, a not activated, s before the subscription's own `since`.
 * `ledger` is what the integration was ever routed at the payer's cost; undefined while that is nothing.
 */
export type RouteAnswer =
  | { readonly answer: 'OK'; readonly flags: string; readonly ledger: LedgerTotal | undefined }
  | { readonly answer: 'CLOSED' | 'PENDING' | 'REVOKED' | 'GONE' | 'REGEN' | 'FENCED' | 'PAUSED' };

export interface Claim {
  readonly lane: string;
  readonly ref: string;
  /** Attempts that were made and failed. */
  readonly attempts: number;
  /** Claims of this event that lapsed: their dispatcher died, or was away for longer than its lease. */
  readonly lapses: number;
}

export type ClaimAnswer =
  | {
      readonly answer: 'OK';
      /** Version of the subscription's configuration that the claim was made under. */
      readonly cfgv: string;
      /** When something may be claimed next; undefined when nothing waits. */
      readonly nextMs: number | undefined;
      readonly more: boolean;
      readonly claims: readonly Claim[];
    }
  | { readonly answer: 'CLOSED' | 'PAUSED' | 'GONE' | 'DISABLED' };

export interface Completion {
  readonly lane: string;
  readonly ref: string;
  readonly token: string;
  /** gone: answered with 410, which disables the endpoint; the event stays open. */
  readonly outcome: 'delivered' | 'dead' | 'expired' | 'failed' | 'gone' | 'released';
  /** When a failed attempt is repeated. */
  readonly dueMs?: number;
  /** Final record: `<outcome> <ms> <attempts> <status or reason> <latency ms, or - without an attempt>`. */
  readonly record?: string;
  /** An attempt that failed (or was answered with 410) and is repeated: `<ms>,<status or reason>,<latency ms>`. */
  readonly attempt?: string;
  /** What an attempt that failed was answered with; at most 16 KiB. */
  readonly responseBody?: Buffer;
  /** The answer was longer than that. */
  readonly responseTruncated?: true;
  /** How the attempt ended, for the status of the subscription; absent where none was made. */
  readonly attempted?: AttemptOutcome;
}

export type CompletionAnswer = 'OK' | 'GONE' | 'STALE';

export interface Completed {
  /** One for each completion, in order. */
  readonly answers: readonly CompletionAnswer[];
  /** When something may be claimed next: a lane is due, and no limit holds it; undefined when nothing waits. */
  readonly nextMs: number | undefined;
  /** The endpoint is disabled, maybe by this: nothing is claimed until it is enabled again. */
  readonly disabled?: true;
  /** How deliveries go now, where that changed. */
  readonly news?: DeliveryNews;
}

/** What is to be claimed. */
export interface Claiming {
  /** Attempts that can be sent at once. */
  readonly room: number;
  /** Unique for this call: it says whose the claims are. */
  readonly token: string;
  /** How long the claims hold their lanes. */
  readonly leaseMs: number;
}

/** `nextMs` is the inbox's after the claims; `claimed` is absent when none were asked for. */
export interface Exchanged extends Completed {
  readonly claimed?: ClaimAnswer;
}

export interface StoredEvent {
  /** JSON of the event's metadata, as ingress stored it. */
  readonly meta: string;
  readonly groupKey: string;
  readonly body: Buffer;
}

/** How long final records are kept beyond their bucket: the longest retention. */
export const RECORD_TTL_MS = 720 * 3_600_000 + BUCKET_MS;

export interface InboxStore {
  readonly route: (
    inbox: InboxRef,
    nowMs: number,
    epoch: number,
    gen: string,
    payer: string,
    items: readonly RouteItem[],
  ) => Promise<RouteAnswer>;
  /** Completes, then claims, in one step; either may be nothing. */
  readonly exchange: (
    inbox: InboxRef,
    nowMs: number,
    items: readonly Completion[],
    claiming?: Claiming,
  ) => Promise<Exchanged>;
  readonly claim: (
    inbox: InboxRef,
    nowMs: number,
    room: number,
    token: string,
    leaseMs: number,
  ) => Promise<ClaimAnswer>;
  readonly complete: (inbox: InboxRef, nowMs: number, items: readonly Completion[]) => Promise<Completed>;
  /** The subscription's configuration as the controller wrote it; undefined when it is gone. */
  readonly readSubscription: (
    integration: string,
    sub: string,
  ) => Promise<Readonly<Record<string, string>> | undefined>;
  readonly readEvents: (
    tenant: string,
    queue: string,
    gen: string,
    ids: readonly string[],
  ) => Promise<(StoredEvent | undefined)[]>;
  /** Ends up to 200 open references before `cut`; `more` while there are. */
  readonly expire: (
    inbox: InboxRef,
    nowMs: number,
    cut: string,
  ) => Promise<{ readonly more: boolean; readonly expired: number }>;
}

const COMPLETION_ANSWERS: Readonly<Record<string, CompletionAnswer>> = { o: 'OK', g: 'GONE', s: 'STALE' };

/** (lane, ref, attempts, lapses)*, separated by line ends. */
function parseClaims(text: string): Claim[] {
  const claims: Claim[] = [];
  const parts = text === '' ? [] : text.split('\n');
  for (let at = 0; at < parts.length; at += 4) {
    claims.push({
      lane: parts[at] as string,
      ref: parts[at + 1] as string,
      attempts: Number(parts[at + 2]),
      lapses: Number(parts[at + 3]),
    });
  }
  return claims;
}

export function createInboxStore(redis: RedisClient): InboxStore {
  async function exchange(
    inbox: InboxRef,
    nowMs: number,
    items: readonly Completion[],
    claiming?: Claiming,
  ): Promise<Exchanged> {
    const i = integrationKeys(inbox.integration);
    const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    const keys = [i.meta, i.act, i.sub(inbox.sub), x.pending, x.due, x.claims, x.tries, x.final, x.failures];
    const buckets = new Map<number, number>();
    const { room, token, leaseMs } = claiming ?? { room: 0, token: '', leaseMs: 0 };
    const attempted = items.findLast(item => item.attempted !== undefined)?.attempted ?? '';
    const args: Argument[] = [nowMs, room, token, leaseMs, RECORD_TTL_MS, attempted, items.length];
    for (const item of items) {
      const bucket = bucketOf(refMs(item.ref));
      let index = buckets.get(bucket);
      if (index === undefined) {
        index = keys.push(x.records(bucket));
        buckets.set(bucket, index);
      }
      const tried = item.outcome === 'failed' || item.outcome === 'gone';
      const note = tried ? item.attempt : item.record;
      args.push(item.lane, item.ref, item.token, item.outcome, item.dueMs ?? 0, index, note ?? '');
    }
    args.push(...bodiesOf(items));
    const reply = (await redis.run('exchange', keys, args)) as [string, string, ClaimAnswer['answer'], ...Reply[]];
    const [next, letters, word, cfgv, more, claims, text] = reply;
    const nextMs = next === '' ? undefined : Number(next);
    const answers = Array.from(letters, letter => COMPLETION_ANSWERS[letter] as CompletionAnswer);
    const disabled = word === 'DISABLED' ? { disabled: true as const } : {};
    const news = parseDeliveryNews(text as string);
    const ended = { answers, nextMs, ...disabled, ...(news && { news }) };
    if (claiming === undefined) return ended;
    if (word !== 'OK') return { ...ended, claimed: { answer: word } };
    const found = { cfgv: cfgv as string, more: more === 1, claims: parseClaims(claims as string) };
    return { ...ended, claimed: { answer: 'OK', nextMs, ...found } };
  }

  return {
    async route(inbox, nowMs, epoch, gen, payer, items) {
      const i = integrationKeys(inbox.integration);
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const args: Argument[] = [nowMs, epoch, gen, payer];
      for (const item of items) args.push(item.ref, item.id, item.groupKey, item.tokens);
      const reply = (await redis.run(
        'route',
        [i.meta, i.act, i.sub(inbox.sub), x.log, x.pending, x.due, i.ledger],
        args,
      )) as string[];
      if (reply[0] === 'OK') {
        return {
          answer: 'OK',
          flags: reply[1] as string,
          ledger: ledgerTotal(reply[2] as string, reply[3] as string),
        };
      }
      return { answer: reply[0] as 'CLOSED' };
    },

    exchange,

    async claim(inbox, nowMs, room, token, leaseMs) {
      return (await exchange(inbox, nowMs, [], { room, token, leaseMs })).claimed as ClaimAnswer;
    },

    async complete(inbox, nowMs, items) {
      return exchange(inbox, nowMs, items);
    },

    async readSubscription(integration, sub) {
      const fields = await redis.readHash(integrationKeys(integration).sub(sub));
      return fields.inc === undefined ? undefined : fields;
    },

    async readEvents(tenant, queue, gen, ids) {
      const q = queueKeys(tenant, queue, gen);
      const reply = (await redis.runBuffers('bodies', [q.bodies], ids)) as Buffer[];
      return ids.map((_id, i) => {
        const head = (reply[2 * i] as Buffer).toString();
        const end = head.indexOf('\n');
        if (end < 0) return undefined;
        return { groupKey: head.slice(0, end), meta: head.slice(end + 1), body: reply[2 * i + 1] as Buffer };
      });
    },

    async expire(inbox, nowMs, cut) {
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const sub = integrationKeys(inbox.integration).sub(inbox.sub);
      const keys = [sub, x.log, x.pending, x.due, x.claims, x.tries, x.final, x.replays];
      const forgotten = refOfStreamId(`${Math.max(0, nowMs - RECORD_TTL_MS)}-0`);
      // Each record lies in the bucket of its ref: where that is older than expected, the script says where to begin.
      for (let first = bucketOf(Number(cut.split('-')[0])) - 2; ; ) {
        const buckets = [first, first + 1, first + 2].map(x.records);
        const reply = await redis.run('expire', [...keys, ...buckets], [nowMs, RECORD_TTL_MS, cut, first, forgotten]);
        const [word, count] = reply as [string, number];
        if (word !== 'OLDER') return { more: word === 'MORE', expired: count };
        first = count;
      }
    },
  };
}
