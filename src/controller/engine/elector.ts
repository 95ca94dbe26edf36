import { isDeepStrictEqual } from 'node:util';
import { isKubeError } from '../../kube/kube-error.ts';
import { formatMicroTime, type Lease, type LeaseSpec, type LeaseStore } from '../../kube/lease.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';

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

export type LeaseTrouble = {
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

/** Timeout of a release: a process that stops has little time, and the lease expires anyway. */
const RELEASE_WITHIN_MS = 3_000;

/**
 * Implements client-go's leader election. A lease of another process expires by the time since this process saw it
 * change, not by the times written in it, so clocks need not agree but must run at about the same speed. Stricter than
 * client-go: the leader's deadline counts from when it sent the last renewal, so a slow answer cannot make two leaders.
 *
 * @throws when the periods contradict each other
 */
export function createElector(options: ElectorOptions): Elector {
  const { leases, identity, clock, random = Math.random } = options;
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs * JITTER) {
    throw new Error('leaseDuration must be longer than renewDeadline, and that longer than 1.2 retryPeriods');
  }
  const log = options.log.child({ identity });
  let observed: { readonly lease: Lease; readonly atMs: number } | undefined;
  let leading = false;
  let leadingFromMs = 0;
  let aside = false;
  let failing: { readonly error: unknown; readonly times: number; readonly fromMs: number } | undefined;
  /** When the last successful renewal was sent. */
  let renewedMs = Number.NEGATIVE_INFINITY;

  /** Notes by this process' clock when the lease last changed. */
  function observe(lease: Lease): void {
    const changed = observed === undefined || !isDeepStrictEqual(observed.lease.spec, lease.spec);
    observed = { lease, atMs: changed ? clock.nowMs() : (observed?.atMs ?? 0) };
  }

  const holder = () => observed?.lease.spec.holderIdentity || undefined;

  /** Tries once. Returns whether the lease is ours now. */
  async function acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    if (holder() !== identity || !leading) {
      const lease = await leases.get(signal);
      signal.throwIfAborted();
      if (lease === undefined) observed = undefined;
      else observe(lease);
    }
    const before = observed;
    if (before !== undefined && !isFree(before)) return false;
    // After the read: others wait from the write that is sent below.
    const sentMs = clock.nowMs();
    const spec = nextSpec(before?.lease.spec);
    try {
      const lease = await (before === undefined
        ? leases.create(spec, signal)
        : leases.update(before.lease, spec, signal));
      signal.throwIfAborted();
      observe(lease);
    } catch (error) {
      signal.throwIfAborted();
      // Another process was faster, or our last write succeeded and its answer was lost: read the lease next time.
      if (isKubeError(error, 409) || isKubeError(error, 404)) observed = undefined;
      throw error;
    }
    renewedMs = sentMs;
    return true;
  }

  function isFree({ lease: { spec }, atMs }: { lease: Lease; atMs: number }): boolean {
    if (!spec.holderIdentity || spec.holderIdentity === identity) return true;
    return atMs + (spec.leaseDurationSeconds ?? 0) * 1_000 <= clock.nowMs();
  }

  function nextSpec(before: LeaseSpec | undefined): LeaseSpec {
    const now = formatMicroTime(clock.wallMs());
    const ours = before?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000),
      acquireTime: (ours ? before?.acquireTime : undefined) ?? now,
      renewTime: now,
      leaseTransitions: before === undefined ? 0 : (before.leaseTransitions ?? 0) + (ours ? 0 : 1),
    };
  }

  /** Tries once within `timeoutMs`, even if the API ignores the signal. */
  async function attempt(timeoutMs: number): Promise<boolean> {
    const deadline = new AbortController();
    const cancel = clock.setTimer(() => deadline.abort(new Error('no answer in time')), timeoutMs);
    try {
      const ours = await Promise.race([acquireOrRenew(deadline.signal), rejection(deadline.signal)]);
      failing = undefined;
      return ours;
    } catch (err) {
      // A conflict is an answer, not a failure.
      if (isKubeError(err, 409)) failing = undefined;
      else failing = { error: err, times: (failing?.times ?? 0) + 1, fromMs: failing?.fromMs ?? clock.nowMs() };
      log.debug({ err }, 'the lease could not be acquired');
      return false;
    } finally {
      cancel();
    }
  }

  /** Renews until the deadline passes, another holds the lease, or `over` aborts. */
  async function renew(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(clock, Math.min(retryPeriodMs, leftMs()), over);
      // Timers count whole milliseconds and cannot wait for a fraction.
      if (over.aborted || leftMs() < 1) return;
      const renewed = await attempt(Math.min(renewDeadlineMs / 2, leftMs()));
      if (!renewed && holder() !== undefined && holder() !== identity) return;
    }
  }

  const leftMs = () => renewedMs + renewDeadlineMs - clock.nowMs();

  /** Leads, then releases the lease. Returns whether the work failed. */
  async function lead(callbacks: Parameters<Elector['run']>[1]): Promise<boolean> {
    const lost = new AbortController();
    const over = new AbortController();
    const transitions = observed?.lease.spec.leaseTransitions ?? 0;
    let failed = false;
    leading = true;
    leadingFromMs = clock.nowMs();
    log.info({ transitions }, 'leading');
    const work = (async () => {
      try {
        await callbacks.onStartedLeading({ transitions, signal: lost.signal });
      } catch (err) {
        if (!lost.signal.aborted) {
          failed = true;
          log.error({ err }, 'leading failed');
        }
      }
      over.abort();
    })();
    await renew(over.signal);
    if (!over.signal.aborted) log.warn('the lease is lost');
    lost.abort(new Error('the lease is lost'));
    await work;
    await release();
    leading = false;
    return failed;
  }

  /** Releases the lease, if it is still ours. Another process can lead at once then (client-go's ReleaseOnCancel). */
  async function release(): Promise<void> {
    const mine = observed;
    if (mine?.lease.spec.holderIdentity !== identity || leftMs() <= 0) return;
    const now = formatMicroTime(clock.wallMs());
    const spec = { ...mine.lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
    const deadline = new AbortController();
    const timeoutMs = Math.min(leftMs(), RELEASE_WITHIN_MS);
    const cancel = clock.setTimer(() => deadline.abort(new Error('no answer in time')), timeoutMs);
    try {
      await Promise.race([leases.update(mine.lease, spec, deadline.signal), rejection(deadline.signal)]);
    } catch (err) {
      log.debug({ err }, 'the lease could not be released; it expires');
    } finally {
      cancel();
      observed = undefined;
    }
  }

  return {
    run: async (stop, callbacks) => {
      while (!stop.aborted) {
        // Won while stopping: do not begin a term.
        if (await attempt(renewDeadlineMs)) {
          if (stop.aborted) await release();
          else if (await lead(callbacks)) {
            aside = true;
            await sleep(clock, leaseDurationMs, stop);
            aside = false;
          }
        }
        await sleep(clock, retryPeriodMs * (1 + JITTER * random()), stop);
      }
    },
    isLeader: () => leading && leftMs() > 0,
    holder,
    leadingForMs: () => (leading && leftMs() > 0 ? clock.nowMs() - leadingFromMs : undefined),
    standsAside: () => aside,
    trouble: () => failing && { error: failing.error, times: failing.times, forMs: clock.nowMs() - failing.fromMs },
  };
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
