import { isDeepStrictEqual } from 'node:util';
import { isKubeError } from '../../kube/kube-error.ts';
import { formatMicroTime, type Lease, type LeaseSpec, type LeaseStore } from '../../kube/lease.ts';
import type { Clock } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';

/**
 * The timeout for releasing the lease. It is short because a process has little time to stop, and the lease will expire
 * in any case.
 */
const RELEASE_WITHIN_MS = 3_000;

/** A lease with the time of its last change, measured by the clock of this process. */
type Observed = { readonly lease: Lease; readonly atMs: number };

/**
 * Creates the state of a lease for one process. A lease that is held by another process expires if this process does
 * not see it change for the lease duration. The times in the lease are not used for this, so the clocks of the
 * processes do not need to be synchronized. However, they must run at about the same speed. The deadline of this
 * process is calculated from the time when the last renewal was sent.
 */
export function createLeaseHold(options: {
  readonly leases: LeaseStore;
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly clock: Clock;
}) {
  const { leases, identity, leaseDurationMs, renewDeadlineMs, clock } = options;
  let observed: Observed | undefined;
  /** The time when the last successful renewal was sent. */
  let renewedMs = Number.NEGATIVE_INFINITY;

  const holder = () => observed?.lease.spec.holderIdentity || undefined;
  const leftMs = () => renewedMs + renewDeadlineMs - clock.nowMs();

  async function read(signal: AbortSignal): Promise<void> {
    const lease = await leases.get(signal);
    signal.throwIfAborted();
    observed = lease && observe(observed, lease, clock.nowMs());
  }

  async function write(spec: LeaseSpec, signal: AbortSignal): Promise<void> {
    try {
      const lease = await (observed === undefined
        ? leases.create(spec, signal)
        : leases.update(observed.lease, spec, signal));
      signal.throwIfAborted();
      observed = observe(observed, lease, clock.nowMs());
    } catch (error) {
      signal.throwIfAborted();
      // Either another process has updated the lease, or our last update succeeded but we did not receive the response.
      // In both cases, the lease is read before the next attempt.
      if (isKubeError(error, 409) || isKubeError(error, 404)) observed = undefined;
      throw error;
    }
  }

  /**
   * Tries once to acquire or renew the lease. Returns true if this process now holds the lease.
   *
   * @param leads set to true if this process is the leader, so that its last observed lease is accurate
   */
  async function take(signal: AbortSignal, leads: boolean): Promise<boolean> {
    if (holder() !== identity || !leads) await read(signal);
    if (observed !== undefined && isHeldByOther(observed, identity, clock.nowMs())) return false;
    // We take the time after the read, because the lease duration starts when the following write is sent.
    const sentMs = clock.nowMs();
    await write(nextSpec(observed?.lease.spec, { identity, leaseDurationMs, wallMs: clock.wallMs() }), signal);
    renewedMs = sentMs;
    return true;
  }

  /**
   * Releases the lease if it is still held by this process, as with ReleaseOnCancel in client-go. This allows another
   * process to lead without a delay. If this fails, the promise is rejected and the lease will expire.
   */
  async function release(): Promise<void> {
    const mine = observed;
    if (mine?.lease.spec.holderIdentity !== identity || leftMs() <= 0) return;
    const spec = releasedSpec(mine.lease.spec, clock.wallMs());
    const timeoutMs = Math.min(leftMs(), RELEASE_WITHIN_MS);
    try {
      await withDeadline(timeoutMs, signal => leases.update(mine.lease, spec, signal), clock);
    } finally {
      observed = undefined;
    }
  }

  return {
    take,
    release,
    /** Returns the identity of the last observed holder, or undefined if the lease is free. */
    holder,
    /** Returns the remaining time of the lease in milliseconds. It is zero or negative if the lease has been lost. */
    leftMs,
    transitions: () => observed?.lease.spec.leaseTransitions ?? 0,
  };
}

export type LeaseHold = ReturnType<typeof createLeaseHold>;

function observe(before: Observed | undefined, lease: Lease, nowMs: number): Observed {
  return { lease, atMs: before && isDeepStrictEqual(before.lease.spec, lease.spec) ? before.atMs : nowMs };
}

/** Returns true if another process holds the lease and the lease has not expired. */
function isHeldByOther({ lease: { spec }, atMs }: Observed, identity: string, nowMs: number): boolean {
  if (!spec.holderIdentity || spec.holderIdentity === identity) return false;
  return nowMs < atMs + (spec.leaseDurationSeconds ?? 0) * 1_000;
}

/** Returns the lease spec that is used to acquire or renew the lease. */
function nextSpec(
  before: LeaseSpec | undefined,
  own: { readonly identity: string; readonly leaseDurationMs: number; readonly wallMs: number },
): LeaseSpec {
  const now = formatMicroTime(own.wallMs);
  const ours = before?.holderIdentity === own.identity;
  return {
    holderIdentity: own.identity,
    leaseDurationSeconds: Math.ceil(own.leaseDurationMs / 1_000),
    acquireTime: (ours ? before?.acquireTime : undefined) ?? now,
    renewTime: now,
    leaseTransitions: before === undefined ? 0 : (before.leaseTransitions ?? 0) + (ours ? 0 : 1),
  };
}

function releasedSpec(spec: LeaseSpec, wallMs: number): LeaseSpec {
  const now = formatMicroTime(wallMs);
  return { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
}
