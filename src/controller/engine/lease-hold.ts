import { isDeepStrictEqual } from 'node:util';
import { isKubeError } from '../../kube/kube-error.ts';
import { formatMicroTime, heldForMs, type Lease, type LeaseSpec, type LeaseStore } from '../../kube/lease.ts';
import type { Clock } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';

/**
 * The timeout for releasing the lease. Short, as a stopping process doesn't have much time and the lease will expire
 * anyway.
 */
const RELEASE_WITHIN_MS = 3_000;

/**
 * Decides whether the lease may be acquired. The function is called before and after the write that acquires the lease.
 * Two processes can acquire different leases at the same time. In this case, the second call must admit at most one of
 * them.
 */
export type Admission = (when: 'before' | 'after', signal: AbortSignal) => Promise<boolean>;

/** A lease together with the time it last changed, according to this process's clock. */
type Observed = { readonly lease: Lease; readonly atMs: number };

/** Creates access to a lease that remembers its last observed state. */
function createObservedLease(leases: LeaseStore, clock: Clock) {
  let observed: Observed | undefined;
  return {
    state: () => observed,

    read: async (signal: AbortSignal): Promise<void> => {
      const lease = await leases.get(signal);
      signal.throwIfAborted();
      observed = lease && observe(observed, lease, clock.nowMs());
    },

    write: async (spec: LeaseSpec, signal: AbortSignal): Promise<void> => {
      try {
        const lease = await (observed === undefined
          ? leases.create(spec, signal)
          : leases.update(observed.lease, spec, signal));
        signal.throwIfAborted();
        observed = observe(observed, lease, clock.nowMs());
      } catch (error) {
        signal.throwIfAborted();
        // Either another process has updated the lease, or our last update was successful but the response was lost. In
        // both cases, we need to read the lease before trying again.
        if (isKubeError(error, 409) || isKubeError(error, 404)) observed = undefined;
        throw error;
      }
    },

    /** Releases the lease if `identity` is its holder. */
    giveBack: async (identity: string, timeoutMs: number): Promise<void> => {
      if (observed !== undefined && observed.lease.spec.holderIdentity !== identity) return;
      try {
        await withDeadline(
          timeoutMs,
          async signal => {
            // The last renewal may have been successful even if its response was lost.
            const lease = await leases.get(signal);
            if (lease?.spec.holderIdentity !== identity) return;
            await leases.update(lease, releasedSpec(lease.spec, clock.wallMs()), signal);
          },
          clock,
        );
      } finally {
        observed = undefined;
      }
    },
  };
}

/**
 * Remembers the answers of an admission. Without an admission, the lease is released because it would keep other
 * processes waiting.
 */
function askFor(admits: Admission, release: () => Promise<void>) {
  let refused = false;
  let everAdmitted = false;
  return {
    isAdmitted: async (when: 'before' | 'after', signal: AbortSignal): Promise<boolean> => {
      try {
        const answer = await admits(when, signal);
        signal.throwIfAborted();
        refused = !answer;
        everAdmitted ||= answer && when === 'after';
        if (!answer) await release().catch(() => {});
        return answer;
      } catch (error) {
        if (!signal.aborted) await release().catch(() => {});
        throw error;
      }
    },
    /** Another process holds the same lease, so it was admitted. */
    otherIsAdmitted: (): void => {
      refused = false;
      everAdmitted = true;
    },
    isRefused: () => refused,
    wasAdmitted: () => everAdmitted,
  };
}

/**
 * Creates a view of a lease for a single process. A lease held by another process expires if we don't see it change for
 * the lease duration, or for one minute. Since the times inside the lease are ignored for this purpose, clocks don't
 * need to be synchronized between processes, although they must run at about the same speed. Our own deadline is based
 * on when the last renewal was sent.
 */
export function createLeaseHold(options: {
  readonly leases: LeaseStore;
  /** See {@link Admission}. */
  readonly admits: Admission;
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly clock: Clock;
}) {
  const { leases, admits, identity, leaseDurationMs, renewDeadlineMs, clock } = options;
  const { state, read, write, giveBack } = createObservedLease(leases, clock);
  const { isAdmitted, ...asked } = askFor(admits, () => giveBack(identity, RELEASE_WITHIN_MS));
  /** The time at which the last successful renewal was sent. */
  let renewedMs = Number.NEGATIVE_INFINITY;
  /** The id of the Redis in the lease before this process acquired it. */
  let lastStore: string | undefined;

  const holder = () => state()?.lease.spec.holderIdentity || undefined;
  const leftMs = () => renewedMs + renewDeadlineMs - clock.nowMs();
  const isOthers = () => isHeldByOther(state(), identity, clock.nowMs());

  /**
   * Makes a single attempt to acquire or renew the lease. If this process now holds the lease, this returns true.
   *
   * @param leads whether this process is the leader, meaning that its last observed lease is accurate
   */
  async function take(signal: AbortSignal, leads: boolean): Promise<boolean> {
    if (holder() !== identity || !leads) await read(signal);
    if (isOthers()) {
      asked.otherIsAdmitted();
      return false;
    }
    // If a leader's lease was deleted, another process may have been admitted in the meantime.
    if (!leads || holder() !== identity) {
      if (!(await isAdmitted('before', signal))) return false;
      lastStore = state()?.lease.store;
      await writeOurs(signal);
      return await isAdmitted('after', signal);
    }
    await writeOurs(signal);
    return true;
  }

  async function writeOurs(signal: AbortSignal): Promise<void> {
    // Take the time after the read because the lease duration starts when the write below is sent.
    const sentMs = clock.nowMs();
    await write(nextSpec(state()?.lease.spec, { identity, leaseDurationMs, wallMs: clock.wallMs() }), signal);
    renewedMs = sentMs;
  }

  return {
    take,

    /**
     * If this process still holds the lease, this releases it (like ReleaseOnCancel in client-go) so that another
     * process can lead without delay. On failure, the promise rejects and the lease will expire.
     */
    release: async (): Promise<void> => {
      if (leftMs() > 0) await giveBack(identity, Math.min(leftMs(), RELEASE_WITHIN_MS));
    },

    /** Returns the most recently observed holder identity. Undefined if the lease is free. */
    holder,
    /** Returns the remaining time of the lease in milliseconds. Zero or negative if the lease has been lost. */
    leftMs,
    /** Returns true if the last attempt failed because it was not admitted. */
    isRefused: asked.isRefused,
    /** Returns true if this process, or another one using the same lease, has ever been admitted. */
    wasAdmitted: asked.wasAdmitted,
    /** Returns the id of the Redis of the current holder, if another process holds the lease. */
    othersStore: () => (isOthers() ? state()?.lease.store : undefined),
    /** Returns the time for which another process has held the lease without renewing it, in milliseconds. */
    silentMs: () => (isOthers() ? clock.nowMs() - (state()?.atMs ?? 0) : 0),
    /** Returns the id of the Redis of the last leader, if known. */
    lastStore: () => lastStore,
    transitions: () => state()?.lease.spec.leaseTransitions ?? 0,
  };
}

export type LeaseHold = ReturnType<typeof createLeaseHold>;

function observe(before: Observed | undefined, lease: Lease, nowMs: number): Observed {
  return { lease, atMs: before && isDeepStrictEqual(before.lease.spec, lease.spec) ? before.atMs : nowMs };
}

/** Returns true if the lease has not expired and is held by another process. */
function isHeldByOther(observed: Observed | undefined, identity: string, nowMs: number): boolean {
  if (observed === undefined) return false;
  const { spec } = observed.lease;
  if (!spec.holderIdentity || spec.holderIdentity === identity) return false;
  return nowMs < observed.atMs + heldForMs(spec);
}

/** Returns the lease spec for acquiring or renewing the lease. */
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
