import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { isTestRef, testEvent } from '../../core/events/test-event.ts';
import { disabledEndpoint } from '../../redis/alarm.ts';
import type { DeliveryNews } from '../../redis/delivery-news.ts';
import {
  type Claim,
  type ClaimAnswer,
  type Completion,
  type Exchanged,
  type InboxStore,
  parseInboxMember,
} from '../../redis/inbox-store.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type DeliverDeps, deliver } from './deliver.ts';
import type { CachedEvent, ReadEvents } from './event-cache.ts';
import { type OpenSubscription, openSubscription, type SubscriptionKeys } from './subscription.ts';

/** The time after an attempt's timeout until the claim is considered lapsed. */
const CLAIM_GRACE_MS = 10_000;
/** The maximum timeout of an endpoint. It is used until the configured timeout is known. */
const LONGEST_TIMEOUT_MS = 30_000;
const RETRY_MS = 500;
/**
 * The maximum time that a stopping worker waits for Redis when there are no attempts in flight. Any events that have
 * not been completed by then will be sent a second time.
 */
const STOP_PATIENCE_MS = 10_000;
/** The maximum delay that `setTimeout` supports. If the next event is due later, the worker checks after this delay. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
const CAPPED_RETRY_MS = 250;
/** The maximum number of claims in a script call. It limits the duration and the number of events to read. */
const CLAIMS_AT_ONCE = 64;
const OPENED_AT_MOST = 20_000;
const COMPLETIONS_AT_ONCE = 256;

/** Room contains the free attempts of the process. If none are left, subscriptions wait until one is released. */
export interface Room {
  free: number;
  readonly waiting: Set<() => void>;
}

export interface WorkerDeps extends DeliverDeps {
  readonly inboxes: Pick<InboxStore, 'exchange' | 'readSubscription'>;
  readonly readEvents: ReadEvents;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  /** A cache of opened subscriptions by member. The claims show whether an entry is out of date. */
  readonly opened: Map<string, OpenSubscription>;
  readonly room: Room;
  readonly nextToken: () => string;
  /** This is called after attempts were completed in Redis. */
  readonly onExchange?: () => void;
  readonly alarm: (slot: string) => void;
  /** This is called when the delivery state of the subscription has changed. */
  readonly onNews?: (member: string, news: DeliveryNews) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Worker {
  /** Works until no events are due and no attempts are in flight. Resolves with the time of the next due event. */
  readonly run: () => Promise<number | null>;
  /** Notifies the worker that an event has become due. */
  readonly poke: () => void;
}

/**
 * Creates a worker for a subscription. It claims events, sends them and writes the completions. Note that there is only
 * one exchange with Redis in flight at any time. All attempts that end in the meantime are completed in the next
 * exchange, which also makes the next claims. This reduces the number of commands for each delivery under load.
 */
export function createWorker(deps: WorkerDeps, member: string): Worker {
  const inbox = parseInboxMember(member);
  const { room } = deps;
  let subscription = deps.opened.get(member);
  const ended: Completion[] = [];
  let inFlight = 0;
  let due = true;
  /**
   * This is true if events were still due after the last completions. It is then likely that the next completions have
   * the same result.
   */
  let hadMore = false;
  let nextMs: number | undefined;
  /**
   * The time at which a stopping worker no longer waits for Redis. It is undefined until an exchange fails when no
   * attempts are in flight.
   */
  let giveUpAtMs: number | undefined;
  let wake: () => void = () => {};

  function poke(): void {
    due = true;
    wake();
  }

  async function changed(): Promise<void> {
    const untilMs = !due && nextMs !== undefined ? nextMs - deps.nowMs() : undefined;
    await new Promise<void>(resolve => {
      const timer =
        untilMs === undefined ? undefined : setTimeout(wakeDue, Math.min(LONGEST_WAIT_MS, Math.max(0, untilMs)));
      function wakeDue(): void {
        due = true;
        wake();
      }
      wake = () => {
        clearTimeout(timer);
        room.waiting.delete(wake);
        wake = () => {};
        resolve();
      };
      if (due && room.free === 0) room.waiting.add(wake);
    });
  }

  function finish(completion: Completion): void {
    ended.push(completion);
    inFlight--;
    release(room);
    // The lane may contain another event. Claim it in the same round trip if the last completions left due events.
    if (hadMore) due = true;
    wake();
  }

  /** Reads the claimed events. Test events are created here because they are not stored in a queue. */
  async function readClaimed({ source }: OpenSubscription, claims: readonly Claim[]) {
    const refs = claims.map(claim => claim.ref);
    if (!refs.some(isTestRef)) return deps.readEvents(source, refs);
    const stored = refs.filter(ref => !isTestRef(ref));
    const read = (stored.length === 0 ? [] : await deps.readEvents(source, stored)).values();
    return refs.map(ref => (isTestRef(ref) ? testEvent(ref, inbox.sub) : read.next().value));
  }

  async function send(claims: readonly Claim[], token: string, claimedAtMs: number): Promise<void> {
    const current = subscription as OpenSubscription;
    let events: (CachedEvent | undefined)[];
    try {
      events = await readClaimed(current, claims);
    } catch (error) {
      deps.log.debug({ err: error, member }, 'events could not be read, claims released');
      // The queue may be on a node that is unavailable while the node of the subscription is available. Wait before the
      // events are claimed a second time to avoid a busy loop.
      await delay(RETRY_MS);
      for (const { lane, ref } of claims) finish({ lane, ref, token, outcome: 'released' });
      return;
    }
    for (const [i, claim] of claims.entries()) {
      void deliver(deps, current, claim, token, claimedAtMs, events[i]).then(finish, async error => {
        deps.log.error({ err: error, member }, 'attempt could not be made');
        await delay(RETRY_MS);
        finish({ lane: claim.lane, ref: claim.ref, token, outcome: 'released' });
      });
    }
  }

  /** Writes the completions and claims as many events as there is room for in a single round trip. */
  async function exchange(): Promise<ClaimAnswer['answer']> {
    const completing = ended.splice(0, COMPLETIONS_AT_ONCE);
    const wanted = due && !deps.signal.aborted ? Math.min(room.free, CLAIMS_AT_ONCE) : 0;
    room.free -= wanted;
    if (wanted > 0) due = false;
    const nowMs = deps.nowMs();
    const token = deps.nextToken();
    const claimedAtMs = deps.monotonicMs();
    const leaseMs = leaseOf(subscription);
    if (completing.length === 0 && wanted === 0) return 'OK';
    let answer: Exchanged;
    try {
      answer = await deps.inboxes.exchange(
        inbox,
        nowMs,
        completing,
        wanted === 0 ? undefined : { room: wanted, token, leaseMs },
      );
    } catch (error) {
      // Completions are repeated if their answer was lost. A delivery is always accepted, and the other outcomes are
      // only accepted with a valid token.
      ended.push(...completing);
      for (let unused = wanted; unused > 0; unused--) release(room);
      if (wanted > 0) due = true;
      throw error;
    }
    if (completing.length > 0) deps.onExchange?.();
    const { claimed } = answer;
    if (answer.disabled === true) deps.alarm(disabledEndpoint(inbox));
    if (answer.news !== undefined) deps.onNews?.(member, answer.news);
    const claims = claimed?.answer === 'OK' ? claimed.claims : [];
    for (let unused = wanted - claims.length; unused > 0; unused--) release(room);
    inFlight += claims.length;
    nextMs = answer.nextMs;
    const overdue = nextMs !== undefined && nextMs <= nowMs;
    if (completing.length > 0) hadMore = overdue || claims.length > 0;
    if (claimed === undefined) due ||= overdue;
    else if (claimed.answer === 'OK') {
      if (claimed.more || claims.length === wanted) due = true;
      // Some due lanes were not claimed because the limit was reached, possibly by claims of other dispatchers.
      if (!due && overdue) nextMs = nowMs + CAPPED_RETRY_MS;
      if (claims.length > 0) await start(claims, token, claimedAtMs, claimed.cfgv, leaseMs);
    }
    return claimed?.answer ?? 'OK';
  }

  async function open(): Promise<void> {
    try {
      subscription = await openSubscription(deps.inboxes, deps.keys, deps.version, inbox, deps.wallMs());
    } catch (error) {
      subscription = undefined;
      deps.log.error({ err: error, member }, 'subscription could not be opened');
    }
    if (deps.opened.size >= OPENED_AT_MOST) deps.opened.clear();
    if (subscription === undefined) deps.opened.delete(member);
    else deps.opened.set(member, subscription);
  }

  async function start(
    claims: readonly Claim[],
    token: string,
    claimedAtMs: number,
    cfgv: string,
    leaseMs: number,
  ): Promise<void> {
    if (subscription?.cfgv !== cfgv || deps.wallMs() >= subscription.validUntilMs) await open();
    // If the lease ends before the attempt does, another dispatcher could send the same event in the meantime.
    const fits = subscription !== undefined && leaseOf(subscription) <= leaseMs;
    if (!fits) for (const { lane, ref } of claims) finish({ lane, ref, token, outcome: 'released' });
    if (subscription === undefined) throw new Error('subscription could not be opened');
    if (!fits) return;
    void send(claims, token, claimedAtMs);
  }

  /** Returns true if a stopped worker may end even if Redis is unavailable. */
  function mayLeave(): boolean {
    if (!deps.signal.aborted || inFlight > 0) return false;
    giveUpAtMs ??= deps.monotonicMs() + STOP_PATIENCE_MS;
    return ended.length === 0 || deps.monotonicMs() >= giveUpAtMs;
  }

  async function work(): Promise<number | null> {
    due = true;
    // The lease of a claim depends on the timeout of the endpoint. This ensures that the delay after a crash is not
    // longer than necessary.
    if (subscription === undefined) await open();
    for (;;) {
      try {
        const answer = await exchange();
        if (answer !== 'OK') {
          nextMs = answer === 'CLOSED' ? deps.nowMs() + 1_000 : undefined;
          if (answer === 'CLOSED') deps.alarm(`i:${inbox.integration}`);
        }
      } catch (error) {
        deps.log.debug({ err: error, member }, 'exchange failed');
        await delay(RETRY_MS);
        if (mayLeave()) return deps.nowMs();
        continue;
      }
      if (ended.length > 0) continue;
      if (inFlight === 0 && !due) return nextMs ?? null;
      // The worker was stopped before the due events were claimed. Return the current time so that other processes can
      // find them immediately.
      if (inFlight === 0 && deps.signal.aborted) return deps.nowMs();
      if (due && room.free > 0 && !deps.signal.aborted) continue;
      await changed();
      // This allows answers that were read in the same turn of the event loop to be completed together.
      if (inFlight > 0) await nextTurn();
    }
  }

  return {
    poke,
    async run() {
      // Wake the worker because it may be waiting for room.
      const onAbort = () => wake();
      deps.signal.addEventListener('abort', onAbort);
      try {
        return await work();
      } finally {
        deps.signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

/** Returns how long a claim locks its lane. If the subscription is not known, the longest timeout is used. */
function leaseOf(subscription: OpenSubscription | undefined): number {
  return (subscription?.endpoint.timeoutMs ?? LONGEST_TIMEOUT_MS) + CLAIM_GRACE_MS;
}

function release(room: Room): void {
  room.free++;
  for (const wake of room.waiting) {
    wake();
    return;
  }
}
