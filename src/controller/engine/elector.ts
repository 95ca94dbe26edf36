import { isKubeError } from '../../kube/kube-error.ts';
import type { LeaseStore } from '../../kube/lease.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';
import { createLeaseHold, type LeaseHold } from './lease-hold.ts';

export type Term = {
  /** The number of times that the holder of the lease has changed. */
  readonly transitions: number;
  /** This signal is aborted when leadership is lost, before another process can acquire the lease. */
  readonly signal: AbortSignal;
};

export type Elector = {
  /**
   * Acquires the lease and leads until leadership is lost, and then tries to acquire the lease again. This is repeated
   * until `stop` is aborted. The lease is released after `onStartedLeading` has returned.
   */
  readonly run: (
    stop: AbortSignal,
    callbacks: {
      /**
       * Called when this process becomes the leader. It must return soon after `term.signal` or `stop` is aborted. If
       * it fails, the lease is released so that another process can acquire it.
       */
      readonly onStartedLeading: (term: Term) => Promise<void>;
    },
  ) => Promise<void>;
  readonly isLeader: () => boolean;
  /** The identity of the last observed holder, or undefined if the lease is free. */
  readonly holder: () => string | undefined;
  /** How long this process has been the leader, in milliseconds. Undefined if this process is not the leader. */
  readonly leadingForMs: () => number | undefined;
  /**
   * Returns true if this process released the lease because its work failed, and is waiting for other processes to
   * acquire it.
   */
  readonly standsAside: () => boolean;
  /** The reason why the lease cannot be read or written. Undefined if the last attempt received a response. */
  readonly trouble: () => LeaseTrouble | undefined;
};

type LeaseTrouble = {
  /** The error of the last attempt. */
  readonly error: unknown;
  /** The number of consecutive failures. */
  readonly times: number;
  /** The time since the first failure, in milliseconds. */
  readonly forMs: number;
};

export type ElectorOptions = {
  readonly leases: LeaseStore;
  /**
   * The identity of this process, for example a host name and a UUID. The identity must be unique, because two
   * processes with the same identity could lead at the same time.
   */
  readonly identity: string;
  /** How long other processes wait after the last renewal that they observed. Defaults to 15 seconds. */
  readonly leaseDurationMs?: number;
  /**
   * How long the leader continues after the last renewal. This must be shorter than the lease duration. Defaults to 10
   * seconds.
   */
  readonly renewDeadlineMs?: number;
  /** The time to wait between two attempts. Defaults to 2 seconds. */
  readonly retryPeriodMs?: number;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
};

/**
 * Jitter is added to the retry period so that the processes do not all retry at the same time. The value is the same as
 * in client-go.
 */
const JITTER = 1.2;

/** Returns the configured periods or their defaults. @throws if the periods are not consistent */
function periodsOf(options: ElectorOptions) {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs * JITTER) {
    throw new Error('leaseDuration must be longer than renewDeadline, and that longer than 1.2 retryPeriods');
  }
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

/** Creates a function that tries to acquire or renew the lease, and records why it fails. */
function createTries(hold: LeaseHold, clock: Clock, log: Logger) {
  let failing: { readonly error: unknown; readonly times: number; readonly fromMs: number } | undefined;
  return {
    /**
     * Tries once to acquire or renew the lease. Returns true if this process holds the lease. The attempt ends after
     * `timeoutMs`, even if the API client ignores the signal.
     */
    attempt: async (timeoutMs: number, leads: boolean): Promise<boolean> => {
      try {
        const ours = await withDeadline(timeoutMs, signal => hold.take(signal, leads), clock);
        failing = undefined;
        return ours;
      } catch (err) {
        // A conflict means that the API server responded, so it is not counted as a failure.
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
 * Creates an elector that implements the leader election of client-go. The deadline of the leader is calculated from
 * the time when the last renewal was sent. This ensures that a slow response cannot result in two leaders.
 *
 * @throws if the periods are not consistent
 */
export function createElector(options: ElectorOptions): Elector {
  const { leases, identity, clock, random = Math.random } = options;
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = periodsOf(options);
  const log = options.log.child({ identity });
  const hold = createLeaseHold({ leases, identity, leaseDurationMs, renewDeadlineMs, clock });
  const { attempt, trouble } = createTries(hold, clock, log);
  let leadingFromMs: number | undefined;
  let aside = false;

  /** Renews the lease until the deadline passes, another process holds the lease, or `over` is aborted. */
  async function renew(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(clock, Math.min(retryPeriodMs, hold.leftMs()), over);
      // We return here because a timer cannot wait for a fraction of a millisecond.
      if (over.aborted || hold.leftMs() < 1) return;
      const renewed = await attempt(Math.min(renewDeadlineMs / 2, hold.leftMs()), true);
      if (!renewed && hold.holder() !== undefined && hold.holder() !== identity) return;
    }
  }

  const release = () =>
    hold.release().catch((err: unknown) => log.debug({ err }, 'cannot release the Lease; it expires'));

  /** Runs the work of the leader and then releases the lease. Returns true if the work failed. */
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
        // Do not start a term if the process is already stopping.
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
