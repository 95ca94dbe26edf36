import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { KubeError } from '../kube/kube-error.ts';
import type { Lease, LeaseSpec, LeaseStore } from '../kube/lease.ts';
import { HOLD_SECONDS, takeLease } from './lease-takeover.ts';

const refusal = (status: number, reason: string) => new KubeError({ call: 'PUT lease', status, reason });

/** An in-memory Lease. Its first `conflicts` writes fail. */
function memoryLeases(spec: LeaseSpec | undefined, conflicts = 0) {
  let version = 1;
  let lease: Lease | undefined = spec && { resourceVersion: '1', spec };
  let left = conflicts;
  const write = (next: LeaseSpec): Promise<Lease> => {
    if (left-- > 0) return Promise.reject(refusal(409, 'Conflict'));
    lease = { resourceVersion: `${++version}`, spec: next };
    return Promise.resolve(lease);
  };
  const store: LeaseStore = { get: async () => lease, create: write, update: (_before, next) => write(next) };
  return { store, spec: () => lease?.spec, set: (next: LeaseSpec) => void write(next) };
}

const HELD = { holderIdentity: 'controller', leaseDurationSeconds: 15, leaseTransitions: 4 };
const OURS = expect.stringMatching(/^uninstall_[-0-9a-f]{36}$/) as unknown;
const never = new AbortController().signal;

describe('taking the Lease', () => {
  test('from a leader waits until the leader has stopped', async () => {
    const clock = createManualClock();
    const leases = memoryLeases(HELD, 2);
    let done = false;
    const taking = takeLease(leases.store, clock, never, true).then(() => (done = true));
    await clock.advance(14_999);
    expect(leases.spec()).toMatchObject({
      holderIdentity: OURS,
      leaseDurationSeconds: HOLD_SECONDS,
      leaseTransitions: 5,
    });
    expect(done).toBe(false);
    await clock.advance(1);
    await taking;
  });

  test('does not wait for an hour if the Lease was edited by hand', async () => {
    const clock = createManualClock();
    const taking = takeLease(memoryLeases({ ...HELD, leaseDurationSeconds: 3_600 }).store, clock, never, true);
    await clock.advance(60_000);
    await taking;
  });

  test.each([
    ['there is none', undefined, 0],
    ['it was released', { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 4 }, 5],
    ['another run has it', { ...HELD, holderIdentity: 'uninstall_1' }, 5],
  ])('does not wait if %s', async (_, spec, leaseTransitions) => {
    const leases = memoryLeases(spec);
    await takeLease(leases.store, createManualClock(), never, true);
    expect(leases.spec()).toMatchObject({ holderIdentity: OURS, leaseTransitions });
  });

  test('from a run that ended early waits for the remaining time', async () => {
    const clock = createManualClock();
    const leases = memoryLeases(HELD);
    void takeLease(leases.store, clock, never, true);
    await clock.advance(5_000);
    let done = false;
    const taking = takeLease(leases.store, clock, never, true).then(() => (done = true));
    await clock.advance(9_999);
    expect(done).toBe(false);
    await clock.advance(1);
    await taking;
  });

  test('does not wait if this is not necessary', async () => {
    const leases = memoryLeases(HELD);
    await takeLease(leases.store, createManualClock(), never, false);
    expect(leases.spec()).toMatchObject({ holderIdentity: OURS });
  });

  test('does nothing if the namespace does not exist, because there is no leader', async () => {
    const create = () => Promise.reject(refusal(404, 'NotFound'));
    const store = { ...memoryLeases(undefined).store, create };
    const renew = await takeLease(store, createManualClock(), never, true);
    await renew('due');
  });
});

describe('renewing', () => {
  test('writes every 15 seconds', async () => {
    const clock = createManualClock();
    const leases = memoryLeases(undefined);
    const renew = await takeLease(leases.store, clock, never, true);
    const first = leases.spec();
    await clock.advance(14_999);
    await renew('due');
    expect(leases.spec()).toBe(first);
    await clock.advance(1);
    await renew('due');
    expect(leases.spec()).not.toBe(first);
    expect(leases.spec()).toMatchObject({ holderIdentity: OURS, leaseTransitions: 0 });
  });

  test('writes immediately if requested', async () => {
    const clock = createManualClock();
    const leases = memoryLeases(undefined);
    const renew = await takeLease(leases.store, clock, never, true);
    const first = leases.spec();
    await clock.advance(1);
    await renew('now');
    expect(leases.spec()).not.toBe(first);
  });

  test('fails if a controller has taken over the Lease', async () => {
    const clock = createManualClock();
    const leases = memoryLeases(undefined);
    const renew = await takeLease(leases.store, clock, never, true);
    leases.set(HELD);
    await clock.advance(15_000);
    await expect(renew('due')).rejects.toThrow('controller has taken the Lease over');
  });
});
