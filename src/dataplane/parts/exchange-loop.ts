import { setTimeout as delay } from 'node:timers/promises';
import type { ExchangeAnswer } from '../../part/claims/exchange.ts';
import type { Part } from '../../part/keys.ts';
import { backoffMs } from '../../time/backoff.ts';
import { createAbsence } from './absence.ts';
import type { ClaimBook } from './claims/claim-book.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import type { PushCount } from './push-count.ts';
import { createPushSearch } from './push-search.ts';
import type { RoomShare } from './room.ts';
import { READY_MS } from './watch.ts';

/** Time during which completions without waiting events are collected and written together. */
const LINGER_MS = 5;
/** The maximum time between two exchanges while there are claims. Each exchange is also used as a heartbeat. */
const BEAT_MS = 1_000;
/** The maximum number of completions and claims per exchange. Each lane that ends can be claimed in the same call. */
const AT_ONCE = 128;
/** The maximum number of bytes in pushes that were not read yet. */
const ROOM_BYTES = 2 * 2 ** 20;
/**
 * If the reply to a call was lost, the call might still be processed, so we need to read its claims again. After a
 * later call, it will be ignored by Redis until this dispatcher is evicted.
 */
const LATE_CALL_MS = 10_000;
/** The time to wait before a retry if a part has no control data, or too many other dispatchers. */
const CLOSED_MS = 1_000;
const RESULTS = { OK: 'ok', CLOSED: 'closed', HELD: 'held', GONE: 'gone' } as const;
const RETRY = { firstMs: 100, mostMs: 1_000 };
/** The time that a stopping worker without attempts waits for Redis. Other dispatchers resend events it can't end. */
const STOP_PATIENCE_MS = 10_000;

export interface ExchangeLoop {
  /** Something waits, or may wait, to be claimed. */
  readonly want: () => void;
  /** An attempt ended. */
  readonly completed: () => void;
  /** Call this while claims are held: the next exchange is then made within a second, as a heartbeat. */
  readonly beat: () => void;
  /** Some of the claims may have been lost before they arrived. */
  readonly reclaim: () => void;
  /** The time at which the last successful exchange was sent, using the local clock. */
  readonly acknowledgedMs: () => number;
  /** Stops claiming. Resolves when the end of all claims has been recorded in Redis, or if Redis is not available. */
  readonly stop: (readyMs: number) => Promise<void>;
}

/**
 * Sends calls to Redis for a single part. There is at most one exchange in progress. If an attempt ends during an
 * exchange, it is recorded by the next exchange, which also returns the next claims.
 */
export function createExchangeLoop(options: {
  readonly deps: PartWorkerDeps;
  readonly part: Part;
  readonly book: ClaimBook;
  readonly room: RoomShare;
  readonly count: PushCount;
  readonly sending: () => number;
  readonly fence: () => Promise<void>;
  readonly isListening: () => boolean;
  readonly onAnswer: (answer: Exclude<ExchangeAnswer, { answer: 'GONE' }>, sentMs: number) => void;
  /** Called if the part is still missing after some time and the worker has not been stopped. */
  readonly onMissing: () => void;
  readonly onFailure: (error: unknown, what: string) => void;
}): ExchangeLoop {
  const { deps, part, book, room, count } = options;
  const { name, monotonicMs } = deps;
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
  /** Set when the worker should stop. The promise resolves when Redis no longer pushes claims. */
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
    // Everything that ends in the same turn is written together.
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
        // Another exchange may have been requested in the meantime.
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

  /** If a worker has been stopped, it will end even if Redis is not available. */
  function mayLeave(): boolean {
    if (stopping === undefined || failures === 0 || options.sending() > 0) return false;
    stopping.giveUpMs ??= monotonicMs() + STOP_PATIENCE_MS;
    return book.count() === 0 || monotonicMs() >= stopping.giveUpMs;
  }

  /** If the part was removed, this returns false. */
  async function exchange(): Promise<boolean> {
    const isStopping = stopping !== undefined;
    clearTimeout(timers.linger);
    delete timers.linger;
    const holds = book.count();
    const limit = isStopping ? 0 : room.limit(holds, want);
    // Reserve the room that this exchange can use, so that no other exchange uses the same room.
    room.reserve(Math.max(0, Math.min(limit - holds, AT_ONCE)));
    const completing = book.startWriting(AT_ONCE);
    isWanted = false;
    isBeatDue = false;
    isLingering = false;
    const sentMs = monotonicMs();
    const caller = { dispatcher: name, number: ++calls, readyMs: READY_MS, limit };
    // Nothing should be pushed while it would be lost.
    const seen = { pushed: count.pushed(), bytes: count.bytes(), roomBytes: options.isListening() ? ROOM_BYTES : 0 };
    const holding = { ...caller, held: holds, holdsAlone: book.holdsAlone(), ...seen };
    let answer: ExchangeAnswer;
    try {
      answer = await deps.exchange(part, holding, completing, isStopping ? 0 : AT_ONCE);
    } catch (error) {
      deps.tally?.exchanged('failed');
      // Redis may have run the call anyway. If a result is sent twice, Redis only uses it once. To find any new claims,
      // read the claims again.
      book.notWritten();
      isWanted = true;
      reclaimWanted = true;
      if (monotonicMs() - acknowledgedMs > READY_MS) absence.silent();
      timers.late ??= setTimeout(() => {
        delete timers.late;
        reclaim();
      }, LATE_CALL_MS);
      room.give(0, want);
      throw error;
    }
    deps.tally?.exchanged(RESULTS[answer.answer]);
    if (answer.answer === 'GONE') {
      book.notWritten();
      stopTimers();
      absence.begin();
      room.give(0, want);
      return false;
    }
    // Our information about it could be older than the data that was used to recreate it.
    if (absence.end()) reclaimWanted = true;
    const written = book.written();
    acknowledgedMs = sentMs;
    // An exchange is also a heartbeat.
    isBeatDue = false;
    pushSearch.expect(answer.pushed, answer.bytes);
    if (answer.more && !isStopping) isWanted = true;
    if (answer.answer !== 'OK') wantLater();
    options.onAnswer(answer, sentMs);
    const takenOrUnread = answer.events.reduce((sum, { claims }) => sum + claims.length, answer.pushed - seen.pushed);
    room.give(written, isStopping || takenOrUnread < limit - holds + written ? want : undefined);
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
   * Returns all claims that are assigned to this dispatcher in Redis, but which it does not know. The list is read
   * first, so that earlier pushes arrive before the fence. Since there is no exchange in progress at this time, they
   * can't be included in a reply.
   */
  async function lookForClaims(): Promise<void> {
    reclaimWanted = false;
    try {
      const own = await deps.readOwnClaims(part, name);
      await options.fence();
      const isKnown = book.lookUp();
      for (const { lane, ref } of own) {
        if (isKnown(lane, ref)) continue;
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

  /** Releases the room that is used by claims which can't be ended any more. */
  function end(): void {
    hasEnded = true;
    stopTimers();
    absence.stop();
    room.give(book.clear() - absence.roomGiven(), want);
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
