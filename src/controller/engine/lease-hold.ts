import { isDeepStrictEqual } from 'node:util';
import { isKubeError } from '../../kube/kube-error.ts';
import { formatMicroTime, type Lease, type LeaseSpec, type LeaseStore } from '../../kube/lease.ts';
import type { Clock } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';

/** Timeout of a release: a process that stops has little time, and the lease expires anyway. */
const RELEASE_WITHIN_MS = 3_000;

/** A lease, and when it last changed by the clock of this process. */
type Observed = { readonly lease: Lease; readonly atMs: number };

/**
 * Creates one process's side of a lease. The lease of another process expires by the time since this process saw it
 * change, not by the times written in it, so clocks need not agree but must run at about the same speed. The own
 * deadline counts from when the last renewal was sent.
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
  /** When the last successful renewal was sent. */
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
      // Another process was faster, or our last write succeeded and its answer was lost: read the lease next time.
      if (isKubeError(error, 409) || isKubeError(error, 404)) observed = undefined;
      throw error;
    }
  }

  /**
   * Tries once to get the lease, or to renew it. Returns whether it is ours now.
   *
   * @param leads the process leads by this lease, so that what it knows of it is true
   */
  async function take(signal: AbortSignal, leads: boolean): Promise<boolean> {
    if (holder() !== identity || !leads) await read(signal);
    if (observed !== undefined && isHeldByOther(observed, identity, clock.nowMs())) return false;
    // After the read: others wait from the write that is sent below.
    const sentMs = clock.nowMs();
    await write(nextSpec(observed?.lease.spec, { identity, leaseDurationMs, wallMs: clock.wallMs() }), signal);
    renewedMs = sentMs;
    return true;
  }

  /**
   * Releases the lease, if it is still ours, so that another process can lead at once (client-go's ReleaseOnCancel).
   * Rejects when that fails: then the lease expires.
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
    /** Returns the identity of the last seen holder; undefined if the lease is free. */
    holder,
    /** Returns how long the lease may still be used, ms; not positive if it is lost. */
    leftMs,
    transitions: () => observed?.lease.spec.leaseTransitions ?? 0,
  };
}

export type LeaseHold = ReturnType<typeof createLeaseHold>;

function observe(before: Observed | undefined, lease: Lease, nowMs: number): Observed {
  return { lease, atMs: before && isDeepStrictEqual(before.lease.spec, lease.spec) ? before.atMs : nowMs };
}

/** Returns whether another process holds the lease and it has not expired. */
function isHeldByOther({ lease: { spec }, atMs }: Observed, identity: string, nowMs: number): boolean {
  if (!spec.holderIdentity || spec.holderIdentity === identity) return false;
  return nowMs < atMs + (spec.leaseDurationSeconds ?? 0) * 1_000;
}

/** Returns the spec with which a process gets or renews the lease. */
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
