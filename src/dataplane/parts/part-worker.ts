import { setTimeout as delay } from 'node:timers/promises';
import type { Completion, ExchangeAnswer } from '../../part/claims/exchange.ts';
import { type ClaimedEvent, parsePush } from '../../part/claims/message.ts';
import { type Part, partKeys } from '../../part/keys.ts';
import { systemClock } from '../../time/clock.ts';
import { createElapsedClock } from '../../time/elapsed-clock.ts';
import { startSpreadInterval } from '../../time/spread-interval.ts';
import { createAdvancing } from './advancing.ts';
import { createBodyShare, createReadBody } from './body-reader.ts';
import { createAttempt } from './claims/attempt.ts';
import { createClaimBook } from './claims/claim-book.ts';
import type { HeldClaim } from './claims/held-claim.ts';
import { createIsReplaced, createOpenSlots, type OpenedSlot } from './claims/opened-slots.ts';
import { createSlotQueues, released } from './claims/slot-queues.ts';
import { createExchangeLoop } from './exchange-loop.ts';
import { createPartClock } from './part-clock.ts';
import type { ReturnCause } from './part-metrics.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import { createPushCount } from './push-count.ts';
import { createWatch, READY_MS } from './watch.ts';

/**
 * If a claim is older than this, it must not be used to send anything. Therefore, a deactivation or a block can take
 * this time to become effective.
 */
const FRESH_MS = 1_000;
/**
 * If there was no acknowledged exchange for this time, nothing can be sent, because other dispatchers might soon take
 * over the claims.
 */
const ACKNOWLEDGED_MS = 2_000;
/** The reason of a claim that is returned because there was no memory for its body, or because it could not be read. */
const UNAVAILABLE = 'unavailable';
/** The delay before returning claims whose body could not be read. */
const RETRY_MS = 500;
/** The interval for checking a part in case all wake-ups were lost. The parts of a process are not checked together. */
const LOOK_MS = 300_000;

export interface PartWorker {
  /** Attempts under way. */
  readonly sending: () => number;
  /**
   * Completes all attempts in progress, returns all other claims, and then leaves the part. Waits a limited time if
   * Redis is unavailable.
   */
  readonly stop: () => Promise<void>;
}

/**
 * Works on a single part. The worker receives claims from pushes and replies, sends the events, and records the
 * results. Idle parts don't cause any commands.
 */
export function createPartWorker(given: PartWorkerDeps, part: Part): PartWorker {
  const elapsed = createElapsedClock(given.monotonicMs, given.wallMs);
  const deps = { ...given, monotonicMs: elapsed.nowMs };
  const { name, pushes } = deps;
  const { channel } = partKeys(part);
  const clock = createPartClock(elapsed, deps.wallMs);
  const book = createClaimBook();
  const count = createPushCount();
  const readBody = createReadBody(deps, part);
  const room = deps.room.join(part.tenant);
  const bodyRoom = deps.bodyRoom.join(part.tenant);
  const bodies = createBodyShare(bodyRoom);
  const attempt = createAttempt({ ...deps, nowMs: clock.nowMs, holdsClaims }, part);
  const isReplaced = createIsReplaced(deps, part);
  const { tally } = deps;
  function fail(error: unknown, what: string): void {
    tally?.failed(error, what, part);
  }
  function missControlData(): void {
    tally?.held('closed');
    deps.onClosed(part);
  }
  let version = '0';
  let advancedVersion: string | undefined;
  let hasListened = false;
  let isStopping = false;
  let cancelDue = () => {};
  const evicting = new Set<string>();

  const queues = createSlotQueues({
    openSlots: createOpenSlots(deps, part),
    version: () => version,
    wallMs: deps.wallMs,
    isFresh: held => !isStopping && isFresh(held),
    send,
    finish(held, completion) {
      if (completion.outcome === 'released') tally?.returned(returnCauseOf(held, completion.reason), 1);
      const next = book.end(held, completion);
      if (next !== undefined) queues.add(next);
      loop.completed();
    },
    onError: error => fail(error, 'subscriptions could not be read'),
  });

  const advancing = createAdvancing({
    advance: deps.advance,
    part,
    onRouted(references) {
      tally?.routed(references);
      loop.want();
    },
    onHold: hold => tally?.held(hold),
    onClosed: missControlData,
    onError: error => fail(error, 'part could not be advanced'),
  });

  const watch = createWatch({
    look: deps.look,
    part,
    name,
    nowMs: clock.nowMs,
    holds: book.count,
    onLost: () => loop.want(),
    onDue: wakeAt,
  });

  const loop = createExchangeLoop({
    deps,
    part,
    book,
    room,
    count,
    sending: queues.sending,
    fence: () => pushes.fence(channel),
    isListening: () => pushes.isListening(channel),
    onAnswer,
    onMissing: missControlData,
    onFailure: fail,
  });

  function holdsClaims(): boolean {
    return elapsed.nowMs() - loop.acknowledgedMs() <= ACKNOWLEDGED_MS;
  }

  function isFresh({ atMs }: HeldClaim): boolean {
    return elapsed.nowMs() - atMs <= FRESH_MS && holdsClaims();
  }

  function returnCauseOf(held: HeldClaim, reason: string): ReturnCause {
    if (isStopping) return 'stopped';
    return reason === UNAVAILABLE || isFresh(held) ? 'unavailable' : 'late';
  }

  async function send(slot: OpenedSlot, held: HeldClaim) {
    const { event } = held;
    const large = event.body === undefined ? (event.size ?? 0) : 0;
    const unavailable = (): Completion => ({ ...released(held), reason: UNAVAILABLE });
    if (large > 0 && !(await bodies.hold(large))) return unavailable();
    try {
      let { body } = event;
      if (large > 0) {
        const read = isStopping ? undefined : await readBody(held.claim);
        if (read === undefined) return unavailable();
        held.atMs = Math.max(held.atMs, read.atMs);
        if (isStopping || !isFresh(held)) return released(held);
        body = read.body;
      }
      const ended = await attempt(slot, held, body);
      // The response is from the old endpoint, which must not disable the new one.
      if (ended.reason !== '410' || !(await isReplaced(slot, held.claim.slot))) return ended;
      // A test event is not repeated. The script only disables an endpoint if its reason is the status.
      if (ended.outcome === 'dead') return { ...ended, reason: 'gone' };
      return { ...ended, outcome: 'failed' as const, dueMs: clock.nowMs() };
    } catch (error) {
      fail(error, 'attempt could not be made');
      await delay(RETRY_MS);
      return unavailable();
    } finally {
      if (large > 0) bodies.release(large);
    }
  }

  function take(events: readonly ClaimedEvent[], partMs: number): number {
    const atMs = clock.elapsedAt(partMs);
    let claims = 0;
    for (const event of events) {
      for (const claim of event.claims) {
        claims++;
        const held: HeldClaim = { claim, event, atMs, behind: claim.behind, next: undefined };
        const before = book.count();
        const isFirst = book.take(held);
        room.take(book.count() - before);
        if (isFirst) queues.add(held);
      }
    }
    if (claims > 0) loop.beat();
    if (claims > 0 && isStopping) queues.giveBack();
    return claims;
  }

  function wakeAt(dueMs: number): void {
    cancelDue();
    if (!isStopping) cancelDue = systemClock.setTimer(loop.want, dueMs - clock.nowMs());
  }

  function onMessage(message: Buffer): void {
    const push = parsePush(message);
    deps.onActivity?.(push);
    noteVersion(push.version);
    for (const lane of push.behind) if (book.markBehind(lane)) loop.completed();
    if (push.dispatcher === name) {
      const claims = take(push.events, push.nowMs);
      if (count.read(push.pushed, push.bytes, claims)) loop.reclaim();
    } else {
      watch.start();
    }
    if (push.waiting && !isStopping) loop.want();
  }

  function noteVersion(now: string): void {
    if (now === version) return;
    version = now;
    // If a row has changed, it may belong to a subscription that is behind. The exchange that follows finds out the
    // rest.
    if (advancedVersion !== undefined) advance();
  }

  function advance(): void {
    advancedVersion = version;
    advancing.start();
  }

  function onAnswer(answer: Exclude<ExchangeAnswer, { answer: 'GONE' }>, sentMs: number): void {
    clock.note(sentMs, elapsed.nowMs(), answer.nowMs);
    deps.onActivity?.(answer);
    noteVersion(answer.version);
    if (advancedVersion !== version || answer.hold !== undefined) advance();
    if (answer.answer === 'CLOSED') missControlData();
    else tally?.held(answer.hold);
    for (const slot of answer.disabled) deps.onDisabled(part, slot);
    for (const { slot, news } of answer.news) deps.onDelivery(part, slot, news);
    for (const lapsed of answer.lapsed) evict(lapsed);
    cancelDue();
    if (answer.dueMs !== undefined) wakeAt(answer.dueMs);
    take(answer.events, answer.nowMs);
    watch.restart();
  }

  function evict(lapsed: string): void {
    if (evicting.has(lapsed)) return;
    evicting.add(lapsed);
    deps
      .evict(part, lapsed)
      .then(
        answer => {
          if (answer.answer !== 'OK' || answer.claims === 0) return;
          tally?.returned('evicted', answer.claims);
          loop.want();
        },
        error => fail(error, 'dispatcher could not be evicted'),
      )
      .finally(() => evicting.delete(lapsed));
  }

  const look = () => {
    loop.reclaim();
    loop.want();
  };
  pushes.listen(channel, {
    onMessage,
    onListening() {
      clock.reset();
      // All parts of a process lose their connection at the same time. Parts that send events can't wait.
      if (hasListened && book.count() === 0 && deps.paced !== undefined) deps.paced(look);
      else if (hasListened) look();
      else loop.want();
      hasListened = true;
    },
  });
  const stopLooking = startSpreadInterval(look, LOOK_MS, deps.random);

  return {
    sending: queues.sending,
    async stop() {
      isStopping = true;
      advancing.stop();
      watch.stop();
      stopLooking();
      cancelDue();
      queues.giveBack();
      await loop.stop(READY_MS);
      cancelDue();
      pushes.leave(channel);
      room.leave();
      bodyRoom.leave();
    },
  };
}
