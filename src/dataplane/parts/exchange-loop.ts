import { setTimeout as delay } from 'node:timers/promises';
import type { ExchangeAnswer } from '../../part/claims/exchange.ts';
import type { Part } from '../../part/keys.ts';
import { backoffMs } from '../../time/backoff.ts';
import { createAbsence } from './absence.ts';
import type { ClaimBook } from './claim-book.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import type { PushCount } from './push-count.ts';
import { createPushSearch } from './push-search.ts';
import { READY_MS } from './watch.ts';

/** Time during which completions without waiting events are collected and written together. */
const LINGER_MS = 5;
/** Maximum time between exchanges while claims are held. Each exchange is also a heartbeat. */
const BEAT_MS = 1_000;
/** Maximum claims per part, claims per exchange, and bytes of unread pushes. */
const LIMIT = 2_048;
const CLAIMS_AT_ONCE = 128;
const ROOM_BYTES = 2 * 2 ** 20;
/**
 * A call whose reply was lost may still be processed, so its claims are read once more. After a later call, Redis
 * ignores it until this dispatcher is evicted.
 */
const LATE_CALL_MS = 10_000;
/** Retry interval for a part without control data, or with too many other dispatchers. */
const CLOSED_MS = 1_000;
const RESULTS = { OK: 'ok', CLOSED: 'closed', HELD: 'held', GONE: 'gone' } as const;
const RETRY = { firstMs: 100, mostMs: 1_000 };
/** How long a stopping worker without attempts waits for Redis. What it could not end is sent again by others. */
const STOP_PATIENCE_MS = 10_000;

export interface ExchangeLoop {
  /** Something waits, or may wait, to be claimed. */
  readonly want: () => void;
  /** An attempt ended. */
  readonly completed: () => void;
  /** Call this while claims are held: the next exchange is then made within a second, as a heartbeat. */
  readonly beat: () => void;
  /** Claims may have been lost on their way. */
  readonly reclaim: () => void;
  /** Send time of the last successful exchange, by the local monotonic clock. */
  readonly acknowledgedMs: () => number;
  /** Stops claiming. Resolves once the end of all held claims is recorded in Redis, or Redis is unavailable. */
  readonly stop: (readyMs: number) => Promise<void>;
}

/**
 * Calls Redis for one part, with at most one exchange in progress. Attempts that end during an exchange are recorded by
 * the next one, which also returns the next claims.
 */
export function createExchangeLoop(options: {
  readonly deps: PartWorkerDeps;
  readonly part: Part;
  readonly book: ClaimBook;
  readonly count: PushCount;
  readonly sending: () => number;
  readonly fence: () => Promise<void>;
  readonly isListening: () => boolean;
  readonly onAnswer: (answer: Exclude<ExchangeAnswer, { answer: 'GONE' }>, sentMs: number) => void;
  /** The part is still missing after some time, and the worker has not been stopped. */
  readonly onMissing: () => void;
  readonly onFailure: (error: unknown, what: string) => void;
}): ExchangeLoop {
  const { deps, part, book, count } = options;
  const { name, room, monotonicMs } = deps;
  let isWanted = false;
  let isBeatDue = false;
  let isLingering = false;
  let reclaimWanted = false;
  let running = false;
  let soon = false;
  let hasEnded = false;
  let failures = 0;
  let calls = 0;
  let acknowledgedMs = Number.NEGATIVE_INFINITY;
  /** Set when the worker should stop. Resolved once Redis has stopped pushing claims. */
  let stopping: { readonly done: () => void; isToldOf: boolean; giveUpMs: number | undefined } | undefined;
  const timers: { [name in 'linger' | 'beat' | 'late' | 'closed']?: NodeJS.Timeout } = {};
  const pushSearch = createPushSearch({ ...options, onLost: reclaim });
  const absence = createAbsence({
    book,
    room,
    onMissing() {
      options.onMissing();
      want();
    },
  });

  function wake(): void {
    if (soon || running || hasEnded) return;
    soon = true;
    // What ends in the same turn is written together.
    setImmediate(() => {
      soon = false;
      if (!running) void run();
    });
  }

  function want(): void {
    isWanted = true;
    wake();
  }

  function reclaim(): void {
    reclaimWanted = true;
    wake();
  }

  function completed(): void {
    if (book.toWrite() === 'urgent' || stopping !== undefined) return wake();
    if (running) return;
    timers.linger ??= setTimeout(() => {
      delete timers.linger;
      isLingering = true;
      wake();
    }, LINGER_MS);
  }

  function beat(): void {
    if (timers.beat !== undefined || book.count() === 0) return;
    timers.beat = setTimeout(
      () => {
        delete timers.beat;
        if (book.count() === 0) return;
        if (monotonicMs() - acknowledgedMs < BEAT_MS) return beat();
        isBeatDue = true;
        wake();
      },
      Math.max(0, Math.min(BEAT_MS, acknowledgedMs + BEAT_MS - monotonicMs())),
    );
  }

  const isToExchange = () =>
    isWanted ||
    isBeatDue ||
    book.toWrite() === 'urgent' ||
    (book.toWrite() === 'some' && (isLingering || stopping !== undefined)) ||
    (stopping !== undefined && !stopping.isToldOf);

  async function run(): Promise<void> {
    running = true;
    while (!hasEnded) {
      try {
        if (reclaimWanted && options.isListening()) await lookForClaims();
        else if (!isToExchange()) break;
        // Somebody may have asked for it meanwhile.
        else if (!(await exchange()) && !isWanted) break;
        failures = 0;
      } catch (error) {
        options.onFailure(error, 'exchange failed');
        await delay(backoffMs(RETRY, ++failures, Math.random));
        if (mayLeave()) break;
      }
    }
    running = false;
    if (hasEnded || hasStopped() || mayLeave()) return stopping?.done();
    if (absence.isGone()) return;
    if (book.toWrite() !== 'none') completed();
    beat();
  }

  /** There is nothing to report if the part was removed. */
  const hasStopped = () => stopping !== undefined && (absence.isGone() || (stopping.isToldOf && book.count() === 0));

  /** A stopped worker also ends while Redis is unavailable. */
  function mayLeave(): boolean {
    if (stopping === undefined || failures === 0 || options.sending() > 0) return false;
    stopping.giveUpMs ??= monotonicMs() + STOP_PATIENCE_MS;
    return book.count() === 0 || monotonicMs() >= stopping.giveUpMs;
  }

  /** Returns false if the part was removed. */
  async function exchange(): Promise<boolean> {
    const isStopping = stopping !== undefined;
    clearTimeout(timers.linger);
    delete timers.linger;
    const holds = book.count();
    const limit = isStopping ? 0 : Math.min(LIMIT, holds + room.free());
    const completing = book.startWriting();
    const isFull = room.free() === 0;
    isWanted = false;
    isBeatDue = false;
    isLingering = false;
    const sentMs = monotonicMs();
    const holding = {
      dispatcher: name,
      number: ++calls,
      readyMs: READY_MS,
      limit,
      held: holds,
      holdsLapsed: book.holdsLapsed(),
    };
    const seen = { pushed: count.pushed(), bytes: count.bytes(), roomBytes: ROOM_BYTES };
    const most = isStopping ? 0 : CLAIMS_AT_ONCE;
    let answer: ExchangeAnswer;
    try {
      answer = await deps.exchange(part, { ...holding, ...seen }, completing, most);
    } catch (error) {
      deps.tally?.exchanged('failed');
      // It may have been made all the same. What is said twice is taken once; what was claimed is looked for.
      book.notWritten();
      isWanted = true;
      reclaimWanted = true;
      if (monotonicMs() - acknowledgedMs > READY_MS) absence.silent();
      timers.late ??= setTimeout(() => {
        delete timers.late;
        reclaim();
      }, LATE_CALL_MS);
      throw error;
    }
    deps.tally?.exchanged(RESULTS[answer.answer]);
    if (answer.answer === 'GONE') {
      book.notWritten();
      stopTimers();
      absence.begin();
      return false;
    }
    // What we knew of it may be older than what it was made again from.
    if (absence.end()) reclaimWanted = true;
    room.give(book.written());
    acknowledgedMs = sentMs;
    pushSearch.expect(answer.pushed, answer.bytes);
    if (answer.more && !isStopping) isWanted = true;
    if (answer.answer !== 'OK') wantLater();
    if (isFull && !isStopping) room.wait(want);
    options.onAnswer(answer, sentMs);
    if (stopping !== undefined && isStopping && !stopping.isToldOf) {
      stopping.isToldOf = true;
      reclaimWanted = true;
    }
    return true;
  }

  function wantLater(): void {
    if (stopping !== undefined || book.count() === 0) return;
    timers.closed ??= setTimeout(() => {
      delete timers.closed;
      want();
    }, CLOSED_MS);
  }

  /**
   * Returns claims that are assigned to this dispatcher in Redis but unknown to it. The list is read first, so that
   * earlier pushes arrive before the fence. No exchange is in progress at this time, so no reply can contain any of
   * them.
   */
  async function lookForClaims(): Promise<void> {
    reclaimWanted = false;
    try {
      const own = await deps.readOwnClaims(part, name);
      await options.fence();
      for (const { lane, ref } of own) {
        if (book.has(lane, ref)) continue;
        book.giveBack(lane, ref);
        room.take(1);
        deps.tally?.returned('lost', 1);
      }
    } catch (error) {
      reclaimWanted = true;
      throw error;
    }
  }

  function stopTimers(): void {
    for (const name of Object.keys(timers) as (keyof typeof timers)[]) {
      clearTimeout(timers[name]);
      delete timers[name];
    }
    pushSearch.stop();
  }

  /** Gives back the room of claims that cannot be ended any more. */
  function end(): void {
    hasEnded = true;
    stopTimers();
    absence.stop();
    room.give(book.clear() - absence.roomGiven());
  }

  return {
    want,
    completed,
    beat,
    reclaim,
    acknowledgedMs: () => acknowledgedMs,
    async stop(readyMs) {
      const isKnown = monotonicMs() - acknowledgedMs < readyMs || book.count() > 0 || running;
      if (hasEnded || !isKnown || (absence.isGone() && !running)) return end();
      await new Promise<void>(resolve => {
        stopping = { done: resolve, isToldOf: false, giveUpMs: undefined };
        wake();
      });
      end();
    },
  };
}
