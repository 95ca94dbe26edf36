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

/** How long after an attempt's timeout the claim is considered lapsed. */
const CLAIM_GRACE_MS = 10_000;
/** Maximum endpoint timeout. Used until the configured timeout is known. */
const LONGEST_TIMEOUT_MS = 30_000;
const RETRY_MS = 500;
/**
 * Maximum time a stopping worker will wait for Redis when no attempts are in flight. Events not completed by then will
 * be sent again.
 */
const STOP_PATIENCE_MS = 10_000;
/**
 * Maximum delay supported by `setTimeout`. If the next event is due even later, we simply check again after this delay.
 */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
const CAPPED_RETRY_MS = 250;
/** Maximum number of claims per script call, limiting both its duration and the number of events to read. */
const CLAIMS_AT_ONCE = 64;
const OPENED_AT_MOST = 20_000;
const COMPLETIONS_AT_ONCE = 256;

/**
 * Room tracks how many attempts this process has left. Once there are none, subscriptions wait until one is released.
 */
export interface Room {
  free: number;
  readonly waiting: Set<() => void>;
}

export interface WorkerDeps extends DeliverDeps {
  readonly inboxes: Pick<InboxStore, 'exchange' | 'readSubscription'>;
  readonly readEvents: ReadEvents;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  /** Cache of opened subscriptions by member. Claims show whether an entry is out of date. */
  readonly opened: Map<string, OpenSubscription>;
  readonly room: Room;
  readonly nextToken: () => string;
  /** Called after attempts were completed in Redis. */
  readonly onExchange?: () => void;
  readonly alarm: (slot: string) => void;
  /** Called whenever the delivery state of the subscription has changed. */
  readonly onNews?: (member: string, news: DeliveryNews) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Worker {
  /**
   * Works until nothing is due and no attempts are in flight. Resolves with the time at which the next event is due.
   */
  readonly run: () => Promise<number | null>;
  /** Notifies the worker that an event has become due. */
  readonly poke: () => void;
}

/**
 * Creates a worker for a subscription: it claims events, sends them, and writes the completions. Note that there's
 * never more than one Redis exchange in flight. Attempts ending in the meantime are completed as part of the next
 * exchange, which also makes the next claims. Under load, this reduces the number of commands per delivery.
 */
export function createWorker(deps: WorkerDeps, member: string): Worker {
  const inbox = parseInboxMember(member);
  const { room } = deps;
  let subscription = deps.opened.get(member);
  const ended: Completion[] = [];
  let inFlight = 0;
  let due = true;
  /**
   * Whether events were still due after the last completions. If so, the next ones will likely have the same result.
   */
  let hadMore = false;
  let nextMs: number | undefined;
  /**
   * Time at which a stopping worker gives up waiting for Redis. Undefined until an exchange fails with no attempts in
   * flight.
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
    // There may be another event in the lane. If the last completions left due events, claim it in the same round trip.
    if (hadMore) due = true;
    wake();
  }

  /** Reads the claimed events. Test events aren't stored in a queue, so we create them here. */
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
      // The queue node may be down while the subscription node is still available. To avoid a busy loop, wait before
      // the events are claimed a second time.
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

  /** Writes completions and claims as many events as there is room for, all in one round trip. */
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
      // Completions are repeated if we didn't get an answer. Deliveries are always accepted; any other outcome requires
      // a valid token.
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
      // The limit was reached before all due lanes were claimed, possibly by claims of other dispatchers.
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
    // If the lease ended before the attempt did, another dispatcher could be sending the same event in the meantime.
    const fits = subscription !== undefined && leaseOf(subscription) <= leaseMs;
    if (!fits) for (const { lane, ref } of claims) finish({ lane, ref, token, outcome: 'released' });
    if (subscription === undefined) throw new Error('subscription could not be opened');
    if (!fits) return;
    void send(claims, token, claimedAtMs);
  }

  /** Returns true if a stopped worker may end even though Redis is unavailable. */
  function mayLeave(): boolean {
    if (!deps.signal.aborted || inFlight > 0) return false;
    giveUpAtMs ??= deps.monotonicMs() + STOP_PATIENCE_MS;
    return ended.length === 0 || deps.monotonicMs() >= giveUpAtMs;
  }

  async function work(): Promise<number | null> {
    due = true;
    // Claim leases depend on the endpoint timeout, which keeps the delay after a crash as short as possible.
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
      // Stopped before all due events were claimed. Return the current time so that other processes can find them
      // immediately.
      if (inFlight === 0 && deps.signal.aborted) return deps.nowMs();
      if (due && room.free > 0 && !deps.signal.aborted) continue;
      await changed();
      // Lets answers read in the same turn of the event loop be completed together.
      if (inFlight > 0) await nextTurn();
    }
  }

  return {
    poke,
    async run() {
      // The worker may be waiting for room, so wake it.
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

/** Returns how long a claim locks its lane. Unknown subscriptions get the longest timeout. */
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
