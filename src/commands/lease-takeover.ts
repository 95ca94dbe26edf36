import { randomUUID } from 'node:crypto';
import { isKubeError } from '../kube/kube-error.ts';
import { formatMicroTime, heldForMs, type LeaseStore, LONGEST_LEASE_SECONDS } from '../kube/lease.ts';
import { type Clock, sleep } from '../time/clock.ts';

/**
 * The time without a leader after the last renewal. The controller's pods need to be terminated within this time. A pod
 * that runs for longer could become the leader and add the finalizers again.
 */
export const HOLD_SECONDS = LONGEST_LEASE_SECONDS;
/** The prefix for the identity used when the command is run. */
const IDENTITY = 'uninstall_';
const RENEW_EVERY_MS = 15_000;
/** The maximum time for which a controller may still be the leader after another run has taken over its Lease. */
const LED_FOR_MS = 15_000;
/** The maximum number of write attempts. A write can fail if another process writes the Lease at the same time. */
const TRIES = 10;

/**
 * Takes over the Lease from the leading controller and waits until that controller is no longer the leader. Unlike an
 * election, this does not wait for the Lease to be released.
 *
 * @param waits whether to wait. Not needed if no object has a finalizer
 * @returns a function that renews the Lease, either `now` or when it is due. Rejects if a controller has taken over the
 * Lease.
 */
export async function takeLease(
  leases: LeaseStore,
  clock: Clock,
  signal: AbortSignal,
  waits: boolean,
): Promise<(when: 'due' | 'now') => Promise<void>> {
  const identity = `${IDENTITY}${randomUUID()}`;
  let writtenMs = clock.nowMs();

  /** Writes the Lease. Returns the time for which the previous holder may have been the leader, in milliseconds. */
  async function write(isFirst: boolean): Promise<number> {
    const before = await leases.get(signal);
    const { holderIdentity = '', leaseTransitions = -1, acquireTime } = before?.spec ?? {};
    if (!isFirst && holderIdentity !== identity) throw new Error(`${holderIdentity} has taken the Lease over`);
    const now = formatMicroTime(clock.wallMs());
    const spec = {
      holderIdentity: identity,
      leaseDurationSeconds: HOLD_SECONDS,
      acquireTime: isFirst ? now : (acquireTime ?? now),
      renewTime: now,
      leaseTransitions: leaseTransitions + (isFirst ? 1 : 0),
    };
    await (before === undefined ? leases.create(spec, signal) : leases.update(before, spec, signal));
    if (holderIdentity === '') return 0;
    if (!holderIdentity.startsWith(IDENTITY)) return heldForMs(before?.spec ?? {});
    // An earlier run of this command may have ended before the controller stopped leading.
    const takenForMs = clock.wallMs() - Date.parse(acquireTime ?? '');
    return takenForMs >= 0 && takenForMs < LED_FOR_MS ? LED_FOR_MS - takenForMs : 0;
  }

  async function writeUntilDone(isFirst: boolean): Promise<number> {
    for (let tries = 1; ; tries++) {
      try {
        return await write(isFirst);
      } catch (error) {
        if (!isKubeError(error, 409) || tries === TRIES) throw error;
      }
    }
  }

  const ledForMs = await writeUntilDone(true).catch((error: unknown) => {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  });
  // If the namespace does not exist, there is no leader.
  if (ledForMs === undefined) return () => Promise.resolve();
  if (waits && ledForMs > 0) await sleep(clock, ledForMs, signal);
  return async when => {
    if (when === 'due' && clock.nowMs() - writtenMs < RENEW_EVERY_MS) return;
    writtenMs = clock.nowMs();
    await writeUntilDone(false);
  };
}
