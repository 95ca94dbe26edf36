import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import { KubeError } from '../../kube/kube-error.ts';
import type { Lease, LeaseStore } from '../../kube/lease.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { createElector, type ElectorOptions, type Term } from './elector.ts';
import { type Admission, createLeaseHold } from './lease-hold.ts';

const log = createLogger({ level: 'silent' });

/**
 * The result of a single call: the request's delay, whether it arrives, the delay of the response, and whether it
 * arrives.
 */
type Fate = { readonly thereMs: number; readonly backMs: number; readonly lost: 'no' | 'request' | 'answer' };

const GOOD: Fate = { thereMs: 1, backMs: 1, lost: 'no' };

/** A Lease with optimistic concurrency that is accessed using a network. */
function createLeaseServer(clock: Pick<Clock, 'setTimer'>) {
  let lease: Lease | undefined;
  let version = 0;
  const conflict = () => new KubeError({ call: 'lease', status: 409, reason: 'Conflict' });

  function connect(fate: () => Fate): LeaseStore {
    async function call<T>(act: () => T): Promise<T> {
      const { thereMs, backMs, lost } = fate();
      await sleep(clock, thereMs);
      if (lost === 'request') throw new KubeError({ call: 'lease', status: 0, reason: 'ConnectionFailed' });
      // Like a server, this executes a request even if its sender does not wait anymore.
      let answer: () => T;
      try {
        const value = act();
        answer = () => value;
      } catch (error) {
        answer = () => {
          throw error;
        };
      }
      await sleep(clock, backMs);
      if (lost === 'answer') throw new KubeError({ call: 'lease', status: 0, reason: 'ConnectionFailed' });
      return answer();
    }
    const put = (spec: Lease['spec']): Lease => {
      version++;
      lease = { resourceVersion: `${version}`, spec };
      return lease;
    };
    return {
      get: () => call(() => lease),
      create: spec =>
        call(() => {
          if (lease !== undefined) throw conflict();
          return put(spec);
        }),
      update: (before, spec) =>
        call(() => {
          if (lease?.resourceVersion !== before.resourceVersion) throw conflict();
          return put(spec);
        }),
    };
  }
  return { connect, lease: () => lease, remove: () => void (lease = undefined) };
}

/** A clock that runs `rate` times as fast and has a different wall time. */
function skewed(clock: ManualClock, rate: number, wallOffsetMs: number): Clock {
  return {
    nowMs: () => clock.nowMs() * rate,
    wallMs: () => clock.wallMs() * rate + wallOffsetMs,
    setTimer: (run, delayMs) => clock.setTimer(run, delayMs / rate),
  };
}

function contend(options: Omit<ElectorOptions, 'log'>, onLeading = () => {}) {
  const elector = createElector({ ...options, log });
  const stop = new AbortController();
  const terms: Term[] = [];
  let leads = false;
  const running = elector.run(stop.signal, {
    onStartedLeading: term => {
      terms.push(term);
      leads = true;
      onLeading();
      return new Promise<void>(resolve => {
        const end = () => {
          leads = false;
          resolve();
        };
        term.signal.addEventListener('abort', end, { once: true });
        stop.signal.addEventListener('abort', end, { once: true });
      });
    },
  });
  return { elector, stop, terms, running, leads: () => leads };
}

describe('elector', () => {
  it('elects one process, and the other process immediately after a release', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const leases = server.connect(() => GOOD);
    const a = contend({ leases, identity: 'a', clock, random: () => 0 });
    await clock.advance(10);
    const b = contend({ leases, identity: 'b', clock, random: () => 0 });
    await clock.advance(60_000);
    expect([a.leads(), b.leads()]).toEqual([true, false]);
    expect(b.elector.holder()).toBe('a');
    expect(server.lease()?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 });
    expect(server.lease()?.spec.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    a.stop.abort();
    await clock.advance(2_100);
    expect([a.leads(), b.leads()]).toEqual([false, true]);
    expect(b.terms[0]?.transitions).toBe(1);
    await a.running;
  });

  it('stops leading before others consider its lease as expired', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    let fate: Fate = GOOD;
    const a = contend({ leases: server.connect(() => fate), identity: 'a', clock });
    await clock.advance(5_000);
    fate = { ...GOOD, lost: 'request' };
    await clock.advance(8_000);
    expect(a.leads()).toBe(true);
    await clock.advance(2_100);
    expect(a.leads()).toBe(false);
    expect(a.elector.isLeader()).toBe(false);
    fate = GOOD;
    await clock.advance(10_000);
    expect(a.leads()).toBe(true);
    expect(a.terms).toHaveLength(2);
  });

  it('ends the work at the deadline, even if a renewal has no response yet', async () => {
    const clock = createManualClock();
    let fate: Fate = GOOD;
    const a = contend({ leases: createLeaseServer(clock).connect(() => fate), identity: 'a', clock });
    await clock.advance(100);
    fate = { thereMs: 60_000, backMs: 0, lost: 'no' };
    await clock.advance(9_800);
    expect(a.leads()).toBe(true);
    await clock.advance(200);
    expect(a.leads()).toBe(false);
  });

  it('starts the deadline when a renewal is sent, and not when its response is received', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    let fate: Fate = GOOD;
    const a = contend({ leases: server.connect(() => fate), identity: 'a', clock });
    await clock.advance(100);
    fate = { thereMs: 0, backMs: 4_900, lost: 'no' };
    // The response to the renewal of second 2 arrives in second 7, and later renewals are lost.
    await clock.advance(3_000);
    fate = { ...GOOD, lost: 'request' };
    await clock.advance(8_800);
    expect(a.leads()).toBe(true);
    await clock.advance(300);
    expect(a.leads()).toBe(false);
  });

  it('does not trust the clock of the holder', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const leases = server.connect(() => GOOD);
    const dead = { holderIdentity: 'dead', leaseDurationSeconds: 15, leaseTransitions: 4 };
    const { signal } = new AbortController();
    const created = leases.create({ ...dead, renewTime: '2099-01-01T00:00:00.000000Z' }, signal);
    await clock.advance(10);
    await created;
    const b = contend({ leases, identity: 'b', clock, random: () => 0 });
    await clock.advance(14_900);
    expect(b.leads()).toBe(false);
    await clock.advance(2_200);
    expect(b.leads()).toBe(true);
    expect(b.terms[0]?.transitions).toBe(5);
  });

  it('leads after one minute if the lease was edited by hand to last longer', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const leases = server.connect(() => GOOD);
    const a = contend({ leases, identity: 'a', clock, random: () => 0 });
    await clock.advance(10_000);
    const edited = { ...server.lease()?.spec, holderIdentity: 'me', leaseDurationSeconds: 3_600 };
    const updated = leases.update(server.lease() as Lease, edited, new AbortController().signal);
    await clock.advance(10_000);
    await updated;
    expect([a.leads(), a.elector.holder()]).toEqual([false, 'me']);
    await clock.advance(50_000);
    expect(a.leads()).toBe(false);
    await clock.advance(10_000);
    expect(a.leads()).toBe(true);
    expect(server.lease()?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15 });
  });

  it('keeps the lease until its work has ended, and then releases it', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const elector = createElector({ leases: server.connect(() => GOOD), identity: 'a', clock, log });
    const stop = new AbortController();
    const work = Promise.withResolvers<void>();
    const running = elector.run(stop.signal, { onStartedLeading: () => work.promise });
    await clock.advance(1_000);
    stop.abort();
    await clock.advance(30_000);
    expect(elector.isLeader()).toBe(true);
    work.resolve();
    await clock.advance(10);
    await running;
    expect(server.lease()?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    expect(elector.isLeader()).toBe(false);
    expect(clock.pendingTimers()).toBe(0);
  });

  it('releases the lease if its work fails, so that the other process can lead', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const leases = server.connect(() => GOOD);
    // Without a delay, it would retry before the other process.
    const broken = createElector({ leases, identity: 'a', clock, random: () => 0, log });
    const stop = new AbortController();
    const work = Promise.withResolvers<void>();
    const running = broken.run(stop.signal, { onStartedLeading: () => work.promise });
    await clock.advance(10);
    const b = contend({ leases, identity: 'b', clock, random: () => 1 });
    await clock.advance(4_500);
    expect([broken.isLeader(), broken.leadingForMs(), b.leads()]).toEqual([true, 4_506, false]);
    work.reject(new Error('broken'));
    await clock.advance(4_500);
    expect([broken.isLeader(), broken.leadingForMs(), b.leads()]).toEqual([false, undefined, true]);
    expect(broken.standsAside()).toBe(true);
    await clock.advance(15_000);
    expect(broken.standsAside()).toBe(false);
    stop.abort();
    b.stop.abort();
    await clock.advance(5_000);
    await Promise.all([running, b.running]);
  });

  it('tries again after a delay if its work failed and no other process took the lease', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const elector = createElector({ leases: server.connect(() => GOOD), identity: 'a', clock, random: () => 0, log });
    const stop = new AbortController();
    let terms = 0;
    const running = elector.run(stop.signal, {
      onStartedLeading: async () => {
        terms++;
        throw new Error('broken');
      },
    });
    await clock.advance(15_000);
    expect(terms).toBe(1);
    await clock.advance(2_100);
    expect(terms).toBe(2);
    stop.abort();
    await clock.advance(10);
    await running;
    expect(clock.pendingTimers()).toBe(0);
  });

  it.each<[string, number]>([
    ['the last renewal', 2_100],
    ['the last two renewals', 4_100],
  ])('releases the lease if the response to %s was lost', async (_what, forMs) => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    let fate: Fate = GOOD;
    const a = contend({ leases: server.connect(() => fate), identity: 'a', clock });
    await clock.advance(100);
    fate = { ...GOOD, lost: 'answer' };
    await clock.advance(forMs);
    fate = GOOD;
    a.stop.abort();
    await clock.advance(10);
    await a.running;
    expect(server.lease()?.spec.holderIdentity).toBe('');
  });

  it('does not wait long if there is no response to a release', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    let fate = GOOD;
    const a = contend({ leases: server.connect(() => fate), identity: 'a', clock });
    await clock.advance(100);
    fate = { ...GOOD, thereMs: 60_000 };
    let ended = false;
    void a.running.then(() => (ended = true));
    a.stop.abort();
    await clock.advance(3_000);
    expect(ended).toBe(true);
  });

  it('does not release a lease that has expired', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const { signal } = new AbortController();
    const periods = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000 };
    const hold = createLeaseHold({
      leases: server.connect(() => GOOD),
      admits: async () => true,
      identity: 'a',
      clock,
      ...periods,
    });
    const taken = hold.take(signal, false);
    await clock.advance(100);
    expect(await taken).toBe(true);
    await clock.advance(periods.renewDeadlineMs);
    const released = hold.release();
    await clock.advance(100);
    await released;
    expect(server.lease()?.spec.holderIdentity).toBe('a');
  });

  it('reports why it cannot get the lease until an attempt succeeds', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const good = server.connect(() => GOOD);
    const missing = new KubeError({ call: 'POST leases', status: 404, reason: 'NotFound' });
    let exists = false;
    const leases = {
      ...good,
      create: (...args: Parameters<typeof good.create>) => (exists ? good.create(...args) : Promise.reject(missing)),
    };
    const a = contend({ leases, identity: 'a', clock, random: () => 0 });
    await clock.advance(4_100);
    expect(a.elector.trouble()).toMatchObject({ error: missing, times: 3 });
    exists = true;
    await clock.advance(2_000);
    expect([a.elector.trouble(), a.leads()]).toEqual([undefined, true]);
    a.stop.abort();
    await clock.advance(10);
    await a.running;
  });

  it.each<[string, () => Promise<boolean>]>([
    ['is not admitted after its write', async () => false],
    ['cannot determine whether it is admitted', () => Promise.reject(new Error('unavailable'))],
  ])('does not lead and releases the lease if it %s', async (_what, answer) => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    const admits: Admission = async when => (when === 'before' ? true : answer());
    const a = contend({ leases: server.connect(() => GOOD), admits, identity: 'a', clock, random: () => 0 });
    await clock.advance(1_000);
    expect([a.leads(), server.lease()?.spec.holderIdentity]).toEqual([false, '']);
    a.stop.abort();
    await clock.advance(10);
    await a.running;
  });

  it('stops leading if its lease was deleted and it is not admitted again', async () => {
    const clock = createManualClock();
    const server = createLeaseServer(clock);
    let admitted = true;
    const admits: Admission = async () => admitted;
    const a = contend({ leases: server.connect(() => GOOD), admits, identity: 'a', clock, random: () => 0 });
    await clock.advance(1_000);
    expect(a.leads()).toBe(true);
    server.remove();
    admitted = false;
    await clock.advance(15_000);
    expect([a.leads(), server.lease()]).toEqual([false, undefined]);
    a.stop.abort();
    await clock.advance(10);
    await a.running;
  });

  it('refuses periods that do not match', () => {
    const leases = createLeaseServer(createManualClock()).connect(() => GOOD);
    const create = (periods: Partial<ElectorOptions>) => () =>
      createElector({ leases, identity: 'a', clock: createManualClock(), log, ...periods });
    expect(create({ leaseDurationMs: 10_000, renewDeadlineMs: 10_000 })).toThrow('leaseDuration');
    expect(create({ renewDeadlineMs: 2_000 })).toThrow('renewDeadline');
  });

  it('never has two leaders, even if messages are delayed or lost, or clocks are skewed', async () => {
    const good = fc.record({ thereMs: fc.nat(50), backMs: fc.nat(50), lost: fc.constant('no' as const) });
    const bad = fc.record({
      thereMs: fc.oneof(fc.nat(50), fc.nat(12_000)),
      backMs: fc.oneof(fc.nat(50), fc.nat(12_000)),
      lost: fc.constantFrom('no' as const, 'request' as const, 'answer' as const),
    });
    // The network alternates between working and failing.
    const spells = fc.array(fc.tuple(fc.oneof(good, bad), fc.integer({ min: 1, max: 10 })), {
      minLength: 1,
      maxLength: 8,
    });
    const node = fc.record({
      // 10 s of a slow clock must have passed before 15 s of a fast clock, so the ratio is below 1.5.
      rate: fc.double({ min: 0.85, max: 1.2, noNaN: true }),
      wallOffsetMs: fc.integer({ min: -1e9, max: 1e9 }),
      fates: spells.map(runs => runs.flatMap(([fate, times]) => Array.from({ length: times }, () => fate))),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
      stopAfterMs: fc.option(fc.nat(120_000)),
    });
    let terms = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(node, { minLength: 2, maxLength: 3 }), async nodes => {
        const clock = createManualClock();
        const server = createLeaseServer(clock);
        let most = 0;
        const contenders: ReturnType<typeof contend>[] = nodes.map(({ rate, wallOffsetMs, fates, jitter }, i) => {
          let calls = 0;
          return contend(
            {
              leases: server.connect(() => fates[calls++ % fates.length] ?? GOOD),
              identity: `node-${i}`,
              clock: skewed(clock, rate, wallOffsetMs),
              random: () => jitter,
            },
            () => {
              most = Math.max(most, contenders.filter(({ leads }) => leads()).length);
            },
          );
        });
        for (const [i, { stopAfterMs }] of nodes.entries()) {
          if (stopAfterMs !== null) clock.setTimer(() => contenders[i]?.stop.abort(), stopAfterMs);
        }
        await clock.advance(180_000);
        for (const { stop } of contenders) stop.abort();
        await clock.advance(60_000);
        await Promise.all(contenders.map(({ running }) => running));
        expect(most).toBeLessThanOrEqual(1);
        terms += contenders.reduce((sum, contender) => sum + contender.terms.length, 0);
        // A fencing epoch derived from these values must increase with each holder.
        const held = contenders.map(contender => contender.terms.map(({ transitions }) => transitions));
        for (const transitions of held) expect(transitions).toEqual(transitions.toSorted((a, b) => a - b));
        const distinct = held.map(transitions => [...new Set(transitions)]);
        expect(new Set(distinct.flat()).size).toBe(distinct.flat().length);
      }),
      { numRuns: 100 },
    );
    expect(terms).toBeGreaterThan(5);
  }, 60_000);
});
