import type { HintIndex } from '../hints/hints.ts';
import { type InboxRef, inboxMember, isReplayId, parseInboxMember } from '../plane/inbox-ref.ts';
import type { ReplayInboxes } from '../plane/replay-inboxes.ts';
import {
  type PricedEvent,
  type ReplayPrice,
  type ReplayRefusal,
  type ReplaySelection,
} from '../plane/replay-prices.ts';
import type { Argument, RedisClient } from '../redis/client.ts';
import { accountKeys } from '../redis/keys.ts';
import { readBalance } from './balance.ts';
import { createSweepReplays, SWEEP_AFTER_MS } from './sweep-replays.ts';

/** A replay which has been charged. */
export interface Replay {
  readonly answer: 'OK';
  readonly replayId: string;
  /** The events and the tokens that have been charged. */
  readonly events: number;
  readonly tokens: number;
  /** false if charged but not completely added to the inbox yet. The sweep completes it. */
  readonly complete: boolean;
  /**
   * The number of these events in progress, and the number of tokens refunded because events have expired in the
   * meantime.
   */
  readonly taken: number;
  readonly refunded: number;
  /** Start position of the next replay. Only for a range. */
  readonly cursor: string | undefined;
}

/**
 * SHORT: the account does not have enough tokens. CONFLICT: the id is already used for another replay of this
 * integration. NOTHING: no event in the range can be replayed. BAD_ID: `[A-Za-z0-9_-]`, from 1 to 64 characters.
 */
export type ReplayAnswer =
  | (Replay & {
      /** True if the replay was started by an earlier call. */
      readonly isRepeated: boolean;
    })
  | { readonly answer: ReplayRefusal | 'SHORT' | 'CONFLICT' | 'BAD_ID' }
  | { readonly answer: 'NOTHING'; readonly cursor: string | undefined };

/** Replays: paid by the account of the integration's own workspace, before anything is sent. */
export interface Replays {
  /** Returns the events and the price of a replay. Charges nothing. */
  readonly price: (
    inbox: InboxRef,
    selection: ReplaySelection,
  ) => Promise<ReplayPrice | { readonly answer: ReplayRefusal }>;
  /**
   * Charges a replay and adds it to the queue. If the id is used again for the same integration, this returns the
   * current state of the replay without charging it again.
   */
  readonly start: (
    account: string,
    replayId: string,
    inbox: InboxRef,
    selection: ReplaySelection,
  ) => Promise<ReplayAnswer>;
  /**
   * Returns the current state of a replay, and the inbox to which it belongs. Returns undefined if the integration
   * (`int_…`) does not have a replay with this id charged to the account, or if the replay is too old.
   */
  readonly read: (
    account: string,
    integration: string,
    replayId: string,
  ) => Promise<{ readonly replay: Replay; readonly inbox: InboxRef } | undefined>;
  /**
   * Completes all replays that have been open for more than 30 s. One that can't be completed does not delay those of
   * other inboxes. Returns the time of the next check in milliseconds, or null if there is none.
   */
  readonly sweep: (account: string) => Promise<number | null>;
}

export interface ReplaysDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  /** The index that contains accounts with open replays. */
  readonly lowerAccounts: HintIndex['lower'];
  readonly inboxes: ReplayInboxes;
  /** The number of events that a script adds to an inbox. */
  readonly chunkEvents: number;
  /** Takes back tokens that were granted to an account's streams. Returns false if none of them responds. */
  readonly reclaimTokens: (account: string) => Promise<boolean>;
}

/** The time that replays are kept, which is the same as for records. */
const RECORD_TTL_MS = 726 * 3_600_000;
/** The time after which an unknown inbox is considered deleted. The remaining events are refunded. */
const ABANDON_AFTER_MS = 3_600_000;
/** The number of times that tokens are taken back for a replay. Each time, up to 64 streams return their tokens. */
const MOST_RECLAIMS = 4;
/** An event's ref, followed by its tokens in base 36. */
const REF_CHARS = 15;
const EVENT_CHARS = REF_CHARS + 2;

interface Intent {
  /** True if the replay was charged by an earlier call. */
  readonly isRepeated: boolean;
  readonly open: boolean;
  readonly inbox: InboxRef;
  readonly selection: string;
  readonly chargedMs: number;
  readonly fields: Readonly<Record<string, string>>;
}

/** The name of a replay within an account. The ids are separate for each integration. */
function nameOf({ integration }: Pick<InboxRef, 'integration'>, replayId: string): string {
  return `${integration}/${replayId}`;
}

async function readIntent(redis: RedisClient, account: string, name: string): Promise<Intent | undefined> {
  const fields = await redis.readHash(accountKeys(account).replay(name));
  if (fields.state === undefined) return undefined;
  return {
    isRepeated: true,
    open: fields.state === 'open',
    inbox: parseInboxMember(fields.inbox as string),
    selection: fields.selection as string,
    chargedMs: Number(fields.chargedMs),
    fields,
  };
}

function answerOf(replayId: string, { open, fields }: Intent): Replay {
  return {
    answer: 'OK',
    replayId,
    events: Number(fields.events),
    tokens: Number(fields.tokens),
    complete: !open,
    taken: Number(fields.taken ?? 0),
    refunded: Number(fields.refunded ?? 0),
    cursor: fields.cursor === '' ? undefined : fields.cursor,
  };
}

type Charge = (
  account: string,
  replayId: string,
  inbox: InboxRef,
  selection: ReplaySelection,
) => Promise<Intent | Exclude<ReplayAnswer, Replay>>;

type Debit = 'OK' | 'SAME' | 'SHORT' | 'CLOSED';

/** Charges the replay and returns its new state. */
function createCharge({ redis, nowMs, lowerAccounts, inboxes, chunkEvents, reclaimTokens }: ReplaysDeps): Charge {
  /**
   * Debits a replay. If its tokens were granted to streams of the account that have not used them, they are taken back.
   */
  async function debit(account: string, name: string, tokens: number, intent: readonly Argument[]): Promise<Debit> {
    const a = accountKeys(account);
    for (let reclaims = 0; ; reclaims++) {
      const answer = (await redis.run('debit', [a.meta, a.hold, a.replays, a.replay(name)], intent)) as Debit;
      if (answer !== 'SHORT' || reclaims === MOST_RECLAIMS) return answer;
      const { remainingTokens = 0 } = (await readBalance(redis, account)) ?? {};
      if (remainingTokens < tokens || !(await reclaimTokens(account))) return answer;
    }
  }

  return async function charge(account, replayId, inbox, selection) {
    const price = await inboxes.price(inbox, selection);
    if (price.answer !== 'OK') return price;
    if (price.events.length === 0) return { answer: 'NOTHING', cursor: price.cursor };
    const chargedMs = nowMs();
    const haveLooked = () => lowerAccounts([{ member: account, dueMs: chargedMs + SWEEP_AFTER_MS }]);
    // Set the time before the charge so that another process completes the replay if this process crashes.
    await haveLooked();
    const fields = {
      inbox: inboxMember(inbox),
      selection: JSON.stringify(selection),
      chargedMs: String(chargedMs),
      events: String(price.events.length),
      cursor: price.cursor ?? '',
      place: await inboxes.placeOf(inbox),
      ...writeChunks(price.events, chunkEvents),
    };
    const name = nameOf(inbox, replayId);
    const intent = [chargedMs, name, price.tokens, ...Object.entries(fields).flat()];
    const answer = await debit(account, name, price.tokens, intent);
    if (answer === 'SHORT' || answer === 'CLOSED') return { answer };
    // After this position as well because a process that was stalled in between may already have been looked up without
    // success.
    await haveLooked();
    return { ...((await readIntent(redis, account, name)) as Intent), isRepeated: answer === 'SAME' };
  };
}

type Complete = (account: string, name: string, intent: Intent) => Promise<boolean>;

/**
 * Adds charged events to the inbox and settles the replay. Steps can be repeated or run concurrently, and take effect
 * once. False while the slot does not contain the inbox.
 */
function createComplete({ redis, nowMs, inboxes }: ReplaysDeps): Complete {
  async function enqueue(
    { inbox, chargedMs, fields }: Intent,
    replayId: string,
    number: number,
    refs: readonly string[],
  ) {
    const letters = await inboxes.enqueue({ inbox, replayId, number, refs, place: fields.place ?? '' });
    if (letters !== undefined) return letters;
    return nowMs() - chargedMs > ABANDON_AFTER_MS ? 'g'.repeat(refs.length) : undefined;
  }

  return async function complete(account, name, intent) {
    const replayId = name.slice(name.indexOf('/') + 1);
    const chunks = Object.keys(intent.fields)
      .filter(field => /^c\d+$/.test(field))
      .toSorted(byNumber);
    let [taken, refund] = [0, 0];
    for (const field of chunks) {
      const events = readChunk(intent.fields[field] as string);
      const flags = await enqueue(
        intent,
        replayId,
        Number(field.slice(1)),
        events.map(({ ref }) => ref),
      );
      if (flags === undefined) return false;
      for (const [i, { tokens }] of events.entries()) {
        if (flags[i] === 't') taken++;
        else refund += tokens;
      }
    }
    if (taken > 0) await inboxes.wake(intent.inbox);
    const a = accountKeys(account);
    await redis.run(
      'settle-replay',
      [a.meta, a.replays, a.replay(name)],
      [nowMs(), RECORD_TTL_MS, name, taken, refund, ...chunks],
    );
    return true;
  };
}

export function createReplays(deps: ReplaysDeps): Replays {
  const { redis, nowMs, inboxes } = deps;
  const charge = createCharge(deps);
  const complete = createComplete(deps);

  return {
    price: inboxes.price,

    async start(account, replayId, inbox, selection) {
      if (!isReplayId(replayId)) return { answer: 'BAD_ID' };
      const name = nameOf(inbox, replayId);
      const known = await readIntent(redis, account, name);
      const intent = known ?? (await charge(account, replayId, inbox, selection));
      if ('answer' in intent) return intent;
      if (inboxMember(intent.inbox) !== inboxMember(inbox) || intent.selection !== JSON.stringify(selection)) {
        return { answer: 'CONFLICT' };
      }
      if (intent.open) await complete(account, name, intent);
      const now = intent.open ? await readIntent(redis, account, name) : undefined;
      return { ...answerOf(replayId, now ?? intent), isRepeated: intent.isRepeated };
    },

    async read(account, integration, replayId) {
      const name = nameOf({ integration }, replayId);
      const intent = isReplayId(replayId) ? await readIntent(redis, account, name) : undefined;
      return intent && { replay: answerOf(replayId, intent), inbox: intent.inbox };
    },

    sweep: createSweepReplays({ redis, nowMs, complete, read: (account, name) => readIntent(redis, account, name) }),
  };
}

function byNumber(a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1));
}

/** The fields `c0`, `c1`, and so on, each of which contains up to `size` events. */
function writeChunks(events: readonly PricedEvent[], size: number): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let at = 0; at < events.length; at += size) {
    fields[`c${at / size}`] = events
      .slice(at, at + size)
      .map(({ ref, tokens }) => ref + tokens.toString(36).padStart(2, '0'))
      .join('');
  }
  return fields;
}

function readChunk(text: string): PricedEvent[] {
  const events: PricedEvent[] = [];
  for (let at = 0; at < text.length; at += EVENT_CHARS) {
    const tokens = text.slice(at + REF_CHARS, at + EVENT_CHARS);
    events.push({ ref: text.slice(at, at + REF_CHARS), tokens: Number.parseInt(tokens, 36) });
  }
  return events;
}
