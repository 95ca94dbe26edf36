import { Counter, createLabeledCounter, Gauge, type Registry, registerGauge } from '../../telemetry/metrics.ts';
import type { NoteFailure } from '../dispatcher/part-failures.ts';

/**
 * ok; closed: control data is missing; held: four other dispatchers work on the part; gone: the part was removed;
 * failed: no response from Redis.
 */
export type ExchangeResult = 'ok' | 'closed' | 'held' | 'gone' | 'failed';

const EXCHANGE_RESULTS: readonly ExchangeResult[] = ['ok', 'closed', 'held', 'gone', 'failed'];

/**
 * evicted: its dispatcher stopped responding; lost: never reached this process; late: too old to be sent; unavailable:
 * the subscription was paused or could not be opened, or there was no memory for the body; stopped: this process leaves
 * the part.
 */
export type ReturnCause = 'evicted' | 'lost' | 'late' | 'unavailable' | 'stopped';

const RETURN_CAUSES: readonly ReturnCause[] = ['evicted', 'lost', 'late', 'unavailable', 'stopped'];

/** Metric labels for held-back parts, by the `hold` field of `meta`. closed is a reply of calls. */
const HOLD_CAUSES = {
  tokens: 'tokens',
  gates: 'control_data',
  closed: 'control_data',
  wide: 'wide_event',
  behind: 'catching_up',
} as const;

type HoldCause = (typeof HOLD_CAUSES)[keyof typeof HOLD_CAUSES];

/** The counters for a single part. */
export interface PartTally {
  readonly exchanged: (result: ExchangeResult) => void;
  readonly returned: (cause: ReturnCause, claims: number) => void;
  /** The number of references that have been routed after their events were stored. */
  readonly routed: (references: number) => void;
  /** The number of deliveries that have expired, after and before they were routed. */
  readonly expired: (swept: { readonly expired: number; readonly neverRouted: number }) => void;
  /** The reason why the part is held back, if known. If it is not held back, this is undefined. */
  readonly held: (hold: string | undefined) => void;
  readonly failed: NoteFailure;
}

/** A part that this process works on. */
export interface TalliedPart {
  readonly tally: PartTally;
  readonly setHome: (isHome: boolean) => void;
  /** Registers a function that returns the number of attempts in progress. */
  readonly observe: (sending: () => number) => void;
  readonly leave: () => void;
}

interface Seen {
  isHome: boolean;
  held: { readonly cause: HoldCause | undefined; readonly sinceMs: number };
  sending: () => number;
}

/** The counters and gauges for all parts of a process. The metrics have no label for the part. */
export interface PartMetrics {
  readonly join: () => TalliedPart;
  /** The number of attempts that are in progress in all parts. */
  readonly sending: () => number;
}

/**
 * @param claims number of claims that the process holds
 * @param failed counts work that failed and is repeated
 */
export function createPartMetrics(registry: Registry, claims: () => number, failed: NoteFailure): PartMetrics {
  const parts = new Set<Seen>();
  const counters = createCounters(registry);
  registerGauges(registry, parts, claims);
  return {
    sending: () => [...parts].reduce((sum, { sending }) => sum + sending(), 0),
    join() {
      const seen: Seen = { isHome: false, held: { cause: undefined, sinceMs: 0 }, sending: () => 0 };
      parts.add(seen);
      return {
        tally: {
          ...counters,
          failed,
          held(hold = '') {
            const cause = HOLD_CAUSES[hold as keyof typeof HOLD_CAUSES] as HoldCause | undefined;
            if (cause !== seen.held.cause) seen.held = { cause, sinceMs: performance.now() };
          },
        },
        setHome: isHome => void (seen.isHome = isHome),
        observe: sending => void (seen.sending = sending),
        leave: () => void parts.delete(seen),
      };
    },
  };
}

function createCounters(registry: Registry): Pick<PartTally, 'exchanged' | 'returned' | 'routed' | 'expired'> {
  const registers = [registry];
  const exchanged = createLabeledCounter(registry, {
    name: 'sluice_dispatcher_exchanges_total',
    help: 'The number of calls that write completed attempts and claim further events, by result: ok, closed (control data is missing), held (four other dispatchers work on the part), gone (the part was removed), or failed (no response from Redis).',
    label: 'result',
    known: EXCHANGE_RESULTS,
  });
  const returned = createLabeledCounter(registry, {
    name: 'sluice_dispatcher_returned_claims_total',
    help: 'The number of claims that were returned without an attempt, by cause: evicted (taken from a dispatcher that stopped responding), lost (never reached this process), late (too old, because others were sent first or the process was too slow), unavailable (subscription paused or not readable, or too many large bodies in memory), or stopped (this process stops working on the part).',
    label: 'cause',
    known: RETURN_CAUSES,
  });
  const routed = new Counter({
    name: 'sluice_dispatcher_routed_total',
    help: 'The number of deliveries created after their events had been stored, because the part was held back or the subscription was behind.',
    registers,
  });
  const notRouted = createLabeledCounter(registry, {
    name: 'sluice_dispatcher_not_routed_total',
    help: 'The number of events missed by subscriptions, by reason: expired (the retention period ended before the event was routed).',
    label: 'reason',
    known: ['expired'],
  });
  const ended = new Counter({
    name: 'sluice_dispatcher_expired_total',
    help: 'The number of deliveries whose retention period ended before they were delivered or pulled, including replays and test events.',
    registers,
  });
  return {
    exchanged,
    returned,
    routed: references => routed.inc(references),
    expired({ expired, neverRouted }) {
      ended.inc(expired);
      notRouted('expired', neverRouted);
    },
  };
}

function registerGauges(registry: Registry, parts: ReadonlySet<Seen>, claims: () => number): void {
  const registers = [registry];
  const count = (is: (part: Seen) => boolean) => [...parts].filter(is).length;
  const heldBy = (cause: HoldCause) => [...parts].filter(({ isHome, held }) => isHome && held.cause === cause);
  const causes = [...new Set(Object.values(HOLD_CAUSES))];
  registerGauge(
    registry,
    'sluice_dispatcher_claims',
    'The number of claims held by this process. An event is claimed until the result of its attempt has been written. A process can hold 4,608 claims. A workspace can use at most as many of them as it leaves free, so a single busy workspace can use 2,304 (2,048 if only one of its streams is busy).',
    claims,
  );
  new Gauge({
    name: 'sluice_dispatcher_parts',
    help: 'The number of parts assigned to this process, by duty: home (also routes waiting events, requests tokens, and removes expired events) or work (only sends). Each part has one home across all dispatchers.',
    labelNames: ['duty'] as const,
    registers,
    collect() {
      this.set(
        { duty: 'home' },
        count(({ isHome }) => isHome),
      );
      this.set(
        { duty: 'work' },
        count(({ isHome }) => !isHome),
      );
    },
  });
  new Gauge({
    name: 'sluice_dispatcher_parts_held',
    help: 'The number of parts with this process as their home that are held back, which means that their events are stored but not routed for now, by cause: tokens (account without tokens), control_data (missing in Redis), wide_event (an event with more than 512 deliveries), or catching_up.',
    labelNames: ['cause'] as const,
    registers,
    collect() {
      for (const cause of causes) this.set({ cause }, heldBy(cause).length);
    },
  });
  new Gauge({
    name: 'sluice_dispatcher_parts_held_seconds',
    help: 'The longest time that a part with this process as its home has been held back, in seconds, by cause. Measured from when this process noticed that the part is held back. The value is 0 if no part is held back for this cause.',
    labelNames: ['cause'] as const,
    registers,
    collect() {
      const nowMs = performance.now();
      for (const cause of causes) {
        const longestMs = Math.max(0, ...heldBy(cause).map(({ held }) => nowMs - held.sinceMs));
        this.set({ cause }, longestMs / 1_000);
      }
    },
  });
}
