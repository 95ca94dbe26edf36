import type { AttemptOutcome } from '../../api/delivery-status.ts';
import type { Argument, Reply } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callForBuffers, type ScriptClient } from '../call.ts';
import { type Part, partKeys, recordsBucketOf } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';
import { type AttemptNote, noteText } from '../records/record.ts';
import { ATTEMPT_LETTERS, parseSlotNews, type SlotNews } from './delivery-note.ts';
import { type ClaimedEvent, parseEvents } from './message.ts';

const SLOT_CHARS = 8;
const EXCHANGE = readNamedScript(new URL('exchange.lua', import.meta.url));

/** An attempt that ended, or was given back. */
export interface Completion extends AttemptNote {
  readonly lane: string;
  readonly ref: string;
  /**
   * gone: the response was 410, which disables the endpoint and keeps the event open. released: no attempt was made.
   */
  readonly outcome: 'delivered' | 'dead' | 'expired' | 'failed' | 'gone' | 'released';
  /**
   * The attempt's result, which is used for the subscription status. If there was no attempt, this is
   * absent. If it is a delivery, it was successful.
   */
  readonly attempted?: AttemptOutcome;
  /** The time at which a failed attempt should be repeated. */
  readonly dueMs?: number;
  /** Response to a failed attempt, up to 16 KiB. */
  readonly responseBody?: Buffer;
  readonly responseTruncated?: true;
}

/** done, ended (had already ended), or stale (the event has another claim or no claim). */
export type CompletionAnswer = 'done' | 'ended' | 'stale';

/** Describes the calling dispatcher. */
export interface Holding {
  readonly dispatcher: string;
  /**
   * The number of the call, which increases with each call of this dispatcher. Redis ignores calls that arrive out of
   * order.
   */
  readonly number: number;
  /**
   * The time after which the dispatcher is considered to be inactive if there is no other exchange, in milliseconds.
   */
  readonly readyMs: number;
  /** The number of claims that it is allowed to have in this part. */
  readonly limit: number;
  /**
   * The number of its claims (including the claims that end in this call), and whether there are any claims for which
   * `isAlone` is set.
   */
  readonly held: number;
  readonly holdsAlone: boolean;
  /** The number of claims and bytes in the pushes that it has read. */
  readonly pushed: number;
  readonly bytes: number;
  /** The maximum number of unread bytes in pushes. */
  readonly roomBytes: number;
}

export type ExchangeAnswer =
  | {
      /**
       * CLOSED: control data is missing. HELD: four other dispatchers work on the part. In both cases, no events are
       * claimed.
       */
      readonly answer: 'OK' | 'CLOSED' | 'HELD';
      /** When this was done, ms of the part's clock: the age of the claims runs from here. */
      readonly nowMs: number;
      /** Total claims and bytes pushed to the dispatcher. */
      readonly pushed: number;
      readonly bytes: number;
      /** There is one for each completion. */
      readonly answers: readonly CompletionAnswer[];
      /** The time at which the next lane is due. If there is no lane with a due time, this is undefined. */
      readonly dueMs: number | undefined;
      /** More can be claimed at once. */
      readonly more: boolean;
      readonly version: string;
      /** Slots with an endpoint disabled by this call. */
      readonly disabled: readonly string[];
      /** The dispatchers that are not responding any more. The caller should take over their claims. */
      readonly lapsed: readonly string[];
      /** The reason why the part is held back and needs to be advanced. */
      readonly hold: string | undefined;
      /** The slots for which the delivery state has changed. */
      readonly news: readonly SlotNews[];
      readonly events: readonly ClaimedEvent[];
    }
  | { readonly answer: 'GONE' };

/**
 * Ends attempts and claims up to `most` events in a single step. Both numbers may be 0. Throws an error if the call was
 * too late.
 */
export type Exchange = (
  part: Part,
  holding: Holding,
  completions: readonly Completion[],
  most: number,
) => Promise<ExchangeAnswer>;

const LETTERS = {
  delivered: 'd',
  dead: 'x',
  expired: 'e',
  failed: 'f',
  gone: 'g',
  released: 'r',
} as const satisfies Record<Completion['outcome'], string>;
const ANSWERS: Readonly<Record<string, CompletionAnswer>> = { o: 'done', g: 'ended', s: 'stale' };

/** The maximum number of response bodies in each call. */
const ANSWER_BYTES = 256 * 1024;

/** (item number, + if truncated, body)*. Limited to the most recent ones. */
function bodiesOf(completions: readonly Completion[]): Argument[] {
  const bodies: Argument[][] = [];
  let bytes = 0;
  for (const [at, { responseBody, responseTruncated }] of [...completions.entries()].toReversed()) {
    if (responseBody === undefined || responseBody.length === 0) continue;
    bytes += responseBody.length;
    if (bytes > ANSWER_BYTES) break;
    bodies.unshift([at, responseTruncated ? '+' : '', responseBody]);
  }
  return bodies.flat();
}

function outcomeText({ outcome, attempted }: Completion): string {
  const isPlain = outcome === 'delivered' || attempted === undefined;
  return LETTERS[outcome] + (isPlain ? '' : ATTEMPT_LETTERS[attempted]);
}

const words = (text: Reply | undefined) => (text as Buffer).toString('latin1').split(' ').filter(Boolean);

/** Returns true for ordered lanes, except for those of replays and test events. */
const isPlainLane = (lane: string) =>
  lane.length > SLOT_CHARS && !lane.includes('\0', SLOT_CHARS) && !lane.includes('\x01', SLOT_CHARS);

interface Sorted {
  /** Indexes of the completions, in the order of the call. */
  readonly order: number[];
  readonly plain: number;
  /** The buckets of all records. All plain completions use the first one. */
  readonly buckets: number[];
}

/**
 * Moves the completions that take fewer steps in Redis (`plain-deliveries.lua`) to the beginning. If a slot has other
 * completions as well, none of its completions are moved, because its last attempt determines its status.
 */
function sortCompletions(completions: readonly Completion[]): Sorted {
  const buckets = new Set<number>();
  const plain: number[] = [];
  const others: number[] = [];
  const otherSlots = new Set<string>();
  for (const [i, { lane, ref, outcome, latencyMs, responseBody }] of completions.entries()) {
    const isDelivered = outcome === 'delivered' && latencyMs !== undefined && responseBody === undefined;
    const bucket = recordsBucketOf(msOfRef(ref));
    if (isDelivered && isPlainLane(lane) && (buckets.size === 0 || buckets.has(bucket))) {
      buckets.add(bucket);
      plain.push(i);
    } else {
      otherSlots.add(lane.slice(0, SLOT_CHARS));
      others.push(i);
    }
  }
  const slotAt = (i: number) => (completions[i] as Completion).lane.slice(0, SLOT_CHARS);
  const isMoved = (i: number) => otherSlots.size === 0 || !otherSlots.has(slotAt(i));
  const moved = plain.filter(isMoved);
  if (moved.length < plain.length) others.push(...plain.filter(i => !isMoved(i)));
  others.sort((a, b) => a - b);
  for (const i of others) buckets.add(recordsBucketOf(msOfRef((completions[i] as Completion).ref)));
  return { order: [...moved, ...others], plain: moved.length, buckets: [...buckets] };
}

/** Returns the arguments for all completions. */
function argumentsOf(completions: readonly Completion[], { order, plain, buckets }: Sorted): Argument[] {
  const all: Argument[] = [];
  for (let at = 0; at < order.length; at++) {
    const completion = completions[order[at] as number] as Completion;
    const { lane, ref, dueMs = 0 } = completion;
    if (at < plain) {
      all.push(lane, ref, noteText(completion));
    } else {
      const index = buckets.indexOf(recordsBucketOf(msOfRef(ref)));
      all.push(lane, ref, outcomeText(completion), dueMs, index, noteText(completion));
    }
  }
  return all.concat(bodiesOf(order.slice(plain).map(i => completions[i] as Completion)));
}

/** Returns the answers in the order of the completions. */
function answersOf(letters: string, order: readonly number[]): CompletionAnswer[] {
  const answers: CompletionAnswer[] = [];
  for (const [at, i] of order.entries()) answers[i] = ANSWERS[letters[at] as string] as CompletionAnswer;
  return answers;
}

export function createExchange(redis: ScriptClient): Exchange {
  return async function exchange(part, holding, completions, most) {
    const keys = partKeys(part);
    const sorted = sortCompletions(completions);
    const listed = sorted.buckets.map(bucket => keys.records(bucket));
    const more = argumentsOf(completions, sorted);
    const { dispatcher, number, readyMs, limit, held, holdsAlone, pushed, bytes, roomBytes } = holding;
    const self = {
      dispatcher,
      number,
      readyMs,
      limit,
      held,
      lapsed: holdsAlone ? 1 : 0,
      seen: pushed,
      seenBytes: bytes,
    };
    const args = {
      gen: part.gen,
      ...self,
      roomBytes,
      most,
      plain: sorted.plain,
      count: completions.length - sorted.plain,
    };
    const [answer, ...rest] = await callForBuffers(redis, EXCHANGE, { keys, listed, args, more });
    if (answer === 'GONE') return { answer };
    if (answer === 'LATE') throw new Error('a later exchange was made before');
    const [nowMs, claims, total, letters, due, hasMore, version, disabled, lapsed, hold, news, events] = rest;
    return {
      answer: answer as 'OK',
      nowMs: nowMs as number,
      pushed: claims as number,
      bytes: total as number,
      answers: answersOf((letters as Buffer).toString('latin1'), sorted.order),
      dueMs: (due as Buffer).length === 0 ? undefined : Number(due),
      more: hasMore === 1,
      version: (version as Buffer).toString('latin1'),
      disabled: words(disabled),
      lapsed: words(lapsed),
      hold: (hold as Buffer).length === 0 ? undefined : (hold as Buffer).toString('latin1'),
      news: parseSlotNews((news as Buffer).toString('latin1')),
      events: parseEvents(Buffer.concat(events as Buffer[])),
    };
  };
}
