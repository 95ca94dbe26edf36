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

/** Beyond an attempt's timeout, before a claim counts as lapsed. */
const CLAIM_GRACE_MS = 10_000;
/** The longest timeout that an endpoint may have: until its own is known. */
const LONGEST_TIMEOUT_MS = 30_000;
const RETRY_MS = 500;
/** How long a stop waits for Redis once nothing is in flight: what is not completed by then is sent again. */
const STOP_PATIENCE_MS = 10_000;
/** `setTimeout` knows no more: what is due later is looked at then. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
const CAPPED_RETRY_MS = 250;
/** Claims one script call makes at most: bounds its time, and what one answer has to fetch. */
const CLAIMS_AT_ONCE = 64;
const OPENED_AT_MOST = 20_000;
const COMPLETIONS_AT_ONCE = 256;

/** Attempts of the whole process; a subscription that finds none free waits for its turn. */
export interface Room {
  free: number;
  readonly waiting: Set<() => void>;
}

export interface WorkerDeps extends DeliverDeps {
  readonly inboxes: Pick<InboxStore, 'exchange' | 'readSubscription'>;
  readonly readEvents: ReadEvents;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  /** What is known of subscriptions that were worked before, by member; a claim says when it is out of date. */
  readonly opened: Map<string, OpenSubscription>;
  readonly room: Room;
  readonly nextToken: () => string;
  /** Attempts were ended in Redis. */
  readonly onExchange?: () => void;
  readonly alarm: (slot: string) => void;
  /** Deliveries go differently now. */
  readonly onNews?: (member: string, news: DeliveryNews) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Worker {
  /** Works until nothing is due and nothing is in flight; answers when something is due next. */
  readonly run: () => Promise<number | null>;
  /** Something became due while it works. */
  readonly poke: () => void;
}

/**
 * Works one subscription: claims, sends, completes. One exchange with Redis is under way at a time; what ends meanwhile
 * is completed together in the next, in one step with the next claims, so commands per delivery fall under load.
 */
export function createWorker(deps: WorkerDeps, member: string): Worker {
  const inbox = parseInboxMember(member);
  const { room } = deps;
  let subscription = deps.opened.get(member);
  const ended: Completion[] = [];
  let inFlight = 0;
  let due = true;
  /** The last completions left something due: the next ones probably will. */
  let hadMore = false;
  let nextMs: number | undefined;
  /** When a stop gives up what Redis did not take; undefined until an exchange fails with nothing in flight. */
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
    // Its lane may hold the next event: claimed in the same round trip when the last one left something due.
    if (hadMore) due = true;
    wake();
  }

  /** Test events lie in no queue. */
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
      // Their queue may lie on a node that is away while ours answers: claiming anew at once would spin.
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

  /** Completes what ended and claims what there is room for, in one round trip. */
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
      // A completion whose answer was lost is repeated: delivered is taken whatever happened since, the rest by token.
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
      // Due lanes that were not given: the cap is reached, maybe by claims of other dispatchers.
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
    // Under a lease that ends before the attempt may, another dispatcher would send the same again meanwhile.
    const fits = subscription !== undefined && leaseOf(subscription) <= leaseMs;
    if (!fits) for (const { lane, ref } of claims) finish({ lane, ref, token, outcome: 'released' });
    if (subscription === undefined) throw new Error('subscription could not be opened');
    if (!fits) return;
    void send(claims, token, claimedAtMs);
  }

  /** Returns whether a stopped worker may leave although Redis does not answer. */
  function mayLeave(): boolean {
    if (!deps.signal.aborted || inFlight > 0) return false;
    giveUpAtMs ??= deps.monotonicMs() + STOP_PATIENCE_MS;
    return ended.length === 0 || deps.monotonicMs() >= giveUpAtMs;
  }

  async function work(): Promise<number | null> {
    due = true;
    // The lease of a claim follows from the endpoint's timeout: after a crash nobody waits longer than that for it.
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
      // Stopped before what is due was claimed: the others must find it at once.
      if (inFlight === 0 && deps.signal.aborted) return deps.nowMs();
      if (due && room.free > 0 && !deps.signal.aborted) continue;
      await changed();
      // Answers that were read in one turn of the event loop are completed together.
      if (inFlight > 0) await nextTurn();
    }
  }

  return {
    poke,
    async run() {
      // One that waits for room would not see the end.
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

/** Returns how long a claim holds its lane. Of a subscription that is not known: as long as the longest timeout needs. */
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
