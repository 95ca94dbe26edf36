import { isKubeError } from '../../kube/kube-error.ts';
import type { LeaseStore } from '../../kube/lease.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';
import { type Admission, createLeaseHold, type LeaseHold } from './lease-hold.ts';

export type Term = {
  /** The number of times that the holder of the lease has changed. */
  readonly transitions: number;
  /** The id of the Redis that the last leader has written to, if known. */
  readonly lastStore?: string | undefined;
  /** Aborted when leadership is lost, before any other process can acquire the lease. */
  readonly signal: AbortSignal;
};

export type Elector = {
  /**
   * Acquires the lease, and leads until the leadership is lost. After that, it retries until `stop` is aborted. The
   * lease is released after `onStartedLeading` has returned.
   */
  readonly run: (
    stop: AbortSignal,
    callbacks: {
      /**
       * Called when this process becomes the leader. It should return soon after `term.signal` or `stop` is aborted. On
       * failure, the lease is released so another process can acquire it.
       */
      readonly onStartedLeading: (term: Term) => Promise<void>;
    },
  ) => Promise<void>;
  readonly isLeader: () => boolean;
  /** The most recently observed holder identity. Undefined if the lease is free. */
  readonly holder: () => string | undefined;
  /** Returns the time for which another process has held the lease without renewing it, in milliseconds. */
  readonly silentMs: () => number;
  /** Returns the id of the leader's Redis, if another process leads and the id is known. */
  readonly othersStore: () => string | undefined;
  /**
   * Returns the time for which this process has been the leader, in milliseconds. Undefined if it is not the leader.
   */
  readonly leadingForMs: () => number | undefined;
  /**
   * Returns true if this process has released the lease because there was a failure. In this case, it waits until
   * another process has acquired the lease.
   */
  readonly standsAside: () => boolean;
  /**
   * Returns `first` if the last attempt was refused by `admits` and no process using this lease has been admitted
   * before, and `later` if one has. Undefined if the attempt was not refused.
   */
  readonly refusal: () => 'first' | 'later' | undefined;
  /**
   * The reason why it is not possible to read or write the lease. Undefined if the API server has responded to the last
   * attempt.
   */
  readonly trouble: () => LeaseTrouble | undefined;
};

type LeaseTrouble = {
  /** The error returned by the last attempt. */
  readonly error: unknown;
  /** The number of consecutive failures. */
  readonly times: number;
  /** The time since the first failure, in milliseconds. */
  readonly forMs: number;
};

export type ElectorOptions = {
  readonly leases: LeaseStore;
  /** Decides whether this process may acquire the lease. By default, it always may. */
  readonly admits?: Admission;
  /**
   * The identity of this process, e.g. a host name and a UUID. Must be unique because two processes with the same
   * identity could both become the leader.
   */
  readonly identity: string;
  /** The time that other processes wait after observing the last renewal. Defaults to 15 seconds. */
  readonly leaseDurationMs?: number;
  /**
   * The time that the leader may continue after the last renewal. Must be shorter than the lease duration. Defaults to
   * 10 seconds.
   */
  readonly renewDeadlineMs?: number;
  /** The time between two attempts. Defaults to 2 seconds. */
  readonly retryPeriodMs?: number;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
};

/** Jitter for the retry period, to prevent all processes from retrying at once. Same value as in client-go. */
const JITTER = 1.2;

/**
 * Returns the configured periods. Defaults are used for periods that are not set. @throws if the periods are
 * inconsistent
 */
function periodsOf(options: ElectorOptions) {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs * JITTER) {
    throw new Error('leaseDuration must be longer than renewDeadline, and that longer than 1.2 retryPeriods');
  }
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

/** Creates a function that will try to acquire or renew the lease. The reason is recorded if an attempt fails. */
function createTries(hold: LeaseHold, clock: Clock, log: Logger) {
  let failing: { readonly error: unknown; readonly times: number; readonly fromMs: number } | undefined;
  return {
    /**
     * Makes a single attempt to acquire or renew the lease and returns true if this process is the holder. The attempt
     * ends after `timeoutMs` even if the API client ignores the signal.
     */
    attempt: async (timeoutMs: number, leads: boolean): Promise<boolean> => {
      try {
        const ours = await withDeadline(timeoutMs, signal => hold.take(signal, leads), clock);
        failing = undefined;
        return ours;
      } catch (err) {
        // Conflicts are not counted as failures, because the API server has responded.
        if (isKubeError(err, 409)) failing = undefined;
        else failing = { error: err, times: (failing?.times ?? 0) + 1, fromMs: failing?.fromMs ?? clock.nowMs() };
        log.debug({ err }, 'failed to acquire the Lease');
        return false;
      }
    },
    trouble: (): LeaseTrouble | undefined =>
      failing && { error: failing.error, times: failing.times, forMs: clock.nowMs() - failing.fromMs },
  };
}

/**
 * Creates an elector implementing client-go's leader election. The leader's deadline is based on when the last renewal
 * was sent, so a slow response can never result in two leaders.
 *
 * @throws if the periods are inconsistent
 */
export function createElector(options: ElectorOptions): Elector {
  const { leases, admits = async () => true, identity, clock, random = Math.random } = options;
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = periodsOf(options);
  const log = options.log.child({ identity });
  const hold = createLeaseHold({ leases, admits, identity, leaseDurationMs, renewDeadlineMs, clock });
  const { attempt, trouble } = createTries(hold, clock, log);
  let leadingFromMs: number | undefined;
  let aside = false;

  /** Renews the lease until the deadline has passed, another process has become the holder, or `over` is aborted. */
  async function renew(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(clock, Math.min(retryPeriodMs, hold.leftMs()), over);
      // Return here because a timer can't wait for a fraction of a millisecond.
      if (over.aborted || hold.leftMs() < 1) return;
      const renewed = await attempt(Math.min(renewDeadlineMs / 2, hold.leftMs()), true);
      if (renewed) continue;
      if (hold.isRefused() || (hold.holder() !== undefined && hold.holder() !== identity)) return;
    }
  }

  const release = () =>
    hold
      .release()
      .catch((err: unknown) => log.debug({ err }, 'failed to release the Lease, which will expire instead'));

  /** Runs the work of the leader and then releases the lease. Returns true if the work has failed. */
  async function lead(work: (term: Term) => Promise<void>): Promise<boolean> {
    const lost = new AbortController();
    const over = new AbortController();
    const transitions = hold.transitions();
    leadingFromMs = clock.nowMs();
    log.info({ transitions }, 'started leading');
    const working = (async () => work({ transitions, lastStore: hold.lastStore(), signal: lost.signal }))()
      .then(
        () => false,
        (err: unknown) => {
          if (lost.signal.aborted) return false;
          log.error({ err }, 'failed to lead, releasing the Lease');
          return true;
        },
      )
      .finally(() => over.abort());
    await renew(over.signal);
    if (!over.signal.aborted) log.warn({ holder: hold.holder() }, 'lost the Lease');
    lost.abort(new Error('lost the lease'));
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
        // Don't start a term if the process is already stopping.
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
    silentMs: hold.silentMs,
    othersStore: hold.othersStore,
    leadingForMs,
    standsAside: () => aside,
    refusal: () => (hold.isRefused() ? (hold.wasAdmitted() ? 'later' : 'first') : undefined),
    trouble,
  };
}
