import { isKubeError } from '../../kube/kube-error.ts';
import type { LeaseStore } from '../../kube/lease.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';
import { createLeaseHold, type LeaseHold } from './lease-hold.ts';

export type Term = {
  /** How often the lease has changed its holder. */
  readonly transitions: number;
  /** Aborts when leadership is lost, before another process can get it. */
  readonly signal: AbortSignal;
};

export type Elector = {
  /**
   * Contends for the lease, leads, and contends again after losing it, until `stop` aborts. Then it waits for
   * `onStartedLeading` to settle and releases the lease.
   */
  readonly run: (
    stop: AbortSignal,
    callbacks: {
      /**
       * The work of the leader. Must end soon after `term.signal` or `stop` has aborted. If it rejects, the lease is
       * released, and another contender gets time to take it.
       */
      readonly onStartedLeading: (term: Term) => Promise<void>;
    },
  ) => Promise<void>;
  readonly isLeader: () => boolean;
  /** Identity of the last seen holder; undefined if the lease is free. */
  readonly holder: () => string | undefined;
  /** How long this process has led, ms; undefined while it does not lead. */
  readonly leadingForMs: () => number | undefined;
  /** Whether this process released the lease because its work failed, and waits for others to take it. */
  readonly standsAside: () => boolean;
  /** Why the lease cannot be read or written; undefined after a try that got an answer. */
  readonly trouble: () => LeaseTrouble | undefined;
};

type LeaseTrouble = {
  /** Error of the last try. */
  readonly error: unknown;
  /** Failures in a row. */
  readonly times: number;
  /** Time since the first of them, ms. */
  readonly forMs: number;
};

export type ElectorOptions = {
  readonly leases: LeaseStore;
  /** Unique to this process, e.g. host name and UUID: two with the same identity would both lead. */
  readonly identity: string;
  /** How long others wait after the last renewal that they saw. Default 15 s. */
  readonly leaseDurationMs?: number;
  /** How long the leader leads after its last renewal. Default 10 s; must be shorter than the lease. */
  readonly renewDeadlineMs?: number;
  /** Pause between two tries. Default 2 s. */
  readonly retryPeriodMs?: number;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
};

/** Contenders spread their tries over this factor of the period (client-go's JitterFactor). */
const JITTER = 1.2;

/** Returns the periods, or their defaults. @throws when they contradict each other */
function periodsOf(options: ElectorOptions) {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs * JITTER) {
    throw new Error('leaseDuration must be longer than renewDeadline, and that longer than 1.2 retryPeriods');
  }
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

/** Creates tries to get or renew the lease, and remembers why they fail. */
function createTries(hold: LeaseHold, clock: Clock, log: Logger) {
  let failing: { readonly error: unknown; readonly times: number; readonly fromMs: number } | undefined;
  return {
    /** Tries once within `timeoutMs`, even if the API ignores the signal. Returns whether the lease is ours. */
    attempt: async (timeoutMs: number, leads: boolean): Promise<boolean> => {
      try {
        const ours = await withDeadline(timeoutMs, signal => hold.take(signal, leads), clock);
        failing = undefined;
        return ours;
      } catch (err) {
        // A conflict is an answer, not a failure.
        if (isKubeError(err, 409)) failing = undefined;
        else failing = { error: err, times: (failing?.times ?? 0) + 1, fromMs: failing?.fromMs ?? clock.nowMs() };
        log.debug({ err }, 'cannot acquire the Lease');
        return false;
      }
    },
    trouble: (): LeaseTrouble | undefined =>
      failing && { error: failing.error, times: failing.times, forMs: clock.nowMs() - failing.fromMs },
  };
}

/**
 * Implements client-go's leader election. Stricter than client-go: the leader's deadline counts from when it sent the
 * last renewal, so a slow answer cannot make two leaders.
 *
 * @throws when the periods contradict each other
 */
export function createElector(options: ElectorOptions): Elector {
  const { leases, identity, clock, random = Math.random } = options;
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = periodsOf(options);
  const log = options.log.child({ identity });
  const hold = createLeaseHold({ leases, identity, leaseDurationMs, renewDeadlineMs, clock });
  const { attempt, trouble } = createTries(hold, clock, log);
  let leadingFromMs: number | undefined;
  let aside = false;

  /** Renews until the deadline passes, another holds the lease, or `over` aborts. */
  async function renew(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(clock, Math.min(retryPeriodMs, hold.leftMs()), over);
      // Timers count whole milliseconds and cannot wait for a fraction.
      if (over.aborted || hold.leftMs() < 1) return;
      const renewed = await attempt(Math.min(renewDeadlineMs / 2, hold.leftMs()), true);
      if (!renewed && hold.holder() !== undefined && hold.holder() !== identity) return;
    }
  }

  const release = () =>
    hold.release().catch((err: unknown) => log.debug({ err }, 'cannot release the Lease; it expires'));

  /** Leads, then releases the lease. Returns whether the work failed. */
  async function lead(work: (term: Term) => Promise<void>): Promise<boolean> {
    const lost = new AbortController();
    const over = new AbortController();
    const transitions = hold.transitions();
    leadingFromMs = clock.nowMs();
    log.info({ transitions }, 'started leading');
    const working = (async () => work({ transitions, signal: lost.signal }))()
      .then(
        () => false,
        (err: unknown) => {
          if (lost.signal.aborted) return false;
          log.error({ err }, 'cannot lead; releasing the Lease');
          return true;
        },
      )
      .finally(() => over.abort());
    await renew(over.signal);
    if (!over.signal.aborted) log.warn('lost the Lease');
    lost.abort(new Error('the lease is lost'));
    const failed = await working;
    await release();
    leadingFromMs = undefined;
    return failed;
  }

  const leadingForMs = () =>
    leadingFromMs !== undefined && hold.leftMs() > 0 ? clock.nowMs() - leadingFromMs : undefined;

  return {
    run: async (stop, { onStartedLeading }) => {
      while (!stop.aborted) {
        // Won while stopping: do not begin a term.
        if (await attempt(renewDeadlineMs, false)) {
          if (stop.aborted) await release();
          else if (await lead(onStartedLeading)) {
            aside = true;
            await sleep(clock, leaseDurationMs, stop);
            aside = false;
          }
        }
        await sleep(clock, retryPeriodMs * (1 + JITTER * random()), stop);
      }
    },
    isLeader: () => leadingForMs() !== undefined,
    holder: hold.holder,
    leadingForMs,
    standsAside: () => aside,
    trouble,
  };
}
