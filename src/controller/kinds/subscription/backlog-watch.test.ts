import { describe, expect, test } from 'vitest';
import { objectOf } from '../../../../test/support/controller/test-context.ts';
import { createManualClock } from '../../../../test/support/manual-clock.ts';
import type { CompiledTenant } from '../../../core/routing/compile-routes.ts';
import type { OldestOpen } from '../../../plane/backlog.ts';
import { createBacklogWatch } from './backlog-watch.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A tenant with subscriptions of one stream with a retention of one hour. The test sets the waiting events. */
function start(names: readonly string[] = ['a']) {
  const clock = createManualClock();
  const statuses = new Map<string, 'True' | 'False'>();
  const state = {
    unrouted: new Map<string, number>(),
    open: new Map<string, OldestOpen | OldestOpen[]>(),
    admitted: true,
    retentionMs: HOUR_MS,
    calls: [] as string[],
    settled: [] as string[],
    flips: [] as string[],
    failing: false,
    tenants: ['acme'],
  };
  const compiled = {
    get routes() {
      return { queues: { orders: { gen: 'g', retentionMs: state.retentionMs } } };
    },
    get verdicts() {
      const ready = state.admitted ? 'Admitted' : 'WaitingForGrant';
      return new Map(names.map(name => [`uid-${name}`, { ready, live: 'Live' }]));
    },
  } as unknown as CompiledTenant;
  // In this test, ids are only derived from the names of the subscriptions.
  const order: string[] = [];
  const watch = createBacklogWatch({
    store: {
      readUnrouted: async (_tenant, queue, gen, inboxes) => {
        state.calls.push(`unrouted ${queue} ${gen} ${inboxes.length}`);
        if (state.failing) throw new Error('unavailable');
        return order.slice(0, inboxes.length).map(name => state.unrouted.get(name));
      },
      readOldestOpen: async inboxes => {
        state.calls.push(`open ${inboxes.length}`);
        return inboxes.map(({ settledTo }, i) => {
          state.settled.push(settledTo);
          const counts = state.open.get(order[i] as string);
          const one = Array.isArray(counts) ? counts.shift() : counts;
          return one ?? { ms: undefined, exact: true, settledTo: '0-0' };
        });
      },
    },
    tenants: () => state.tenants,
    compiled: () => compiled,
    subscriptionsOf: () => {
      order.splice(0, order.length, ...names);
      return names.map(name => {
        const status = statuses.get(name);
        const conditions = status === undefined ? [] : [{ type: 'BacklogAtRisk', status }];
        const spec = { producer: 'acme', integration: 'globex', stream: 'orders' } as never;
        return objectOf<'Subscription'>(name, spec, { namespace: 'globex', status: { conditions } });
      });
    },
    onFlip: key => state.flips.push(key),
    nowMs: clock.wallMs,
    clock,
    random: () => 0.5,
    log: { debug: () => {} },
  });
  return { clock, watch, state, statuses, over: new AbortController() };
}

describe('the backlog watch', () => {
  test('finds events that have waited for 80 % of the retention, and reports when this has ended', async () => {
    const { clock, watch, state, statuses } = start();
    for (const where of ['queue', 'inbox'] as const) {
      const waitingSinceMs = clock.wallMs();
      if (where === 'queue') state.unrouted.set('a', waitingSinceMs);
      else state.open.set('a', { ms: waitingSinceMs, exact: true, settledTo: '0-0' });
      await watch.check('acme');
      expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
      await clock.advance(0.8 * HOUR_MS - 1);
      await watch.check('acme');
      expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
      expect(state.flips).toEqual([]);
      await clock.advance(1);
      await watch.check('acme');
      expect(watch.isAtRisk('acme', 'uid-a')).toBe(true);
      expect(state.flips.splice(0)).toEqual(['globex/a']);
      statuses.set('a', 'True');
      await watch.check('acme');
      expect(state.flips).toEqual([]);
      state.unrouted.clear();
      state.open.clear();
      await watch.check('acme');
      expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
      expect(state.flips.splice(0)).toEqual(['globex/a']);
      statuses.set('a', 'False');
    }
  });

  test('finds an event that was already waiting before the first check', async () => {
    const { clock, watch, state } = start();
    state.unrouted.set('a', clock.wallMs() - HOUR_MS / 2);
    await watch.check('acme');
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
    await clock.advance(0.3 * HOUR_MS);
    await watch.check('acme');
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(true);
  });

  test('reports when a backlog is no longer at risk because the retention is longer', async () => {
    const { clock, watch, state } = start();
    state.unrouted.set('a', clock.wallMs() - HOUR_MS);
    await watch.check('acme');
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(true);
    state.retentionMs = 2 * HOUR_MS;
    await watch.check('acme');
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
  });

  test('spreads the first checks of a term over a minute', async () => {
    // The random number is 0.5.
    const { clock, watch, state, over } = start();
    watch.begin(over.signal);
    await clock.advance(0.5 * MINUTE_MS);
    expect(state.calls).toEqual([]);
    await clock.advance(2_000);
    expect(state.calls).toEqual(['unrouted orders g 1', 'open 1']);
    over.abort();
  });

  test('does not read a subscription without a backlog until one could be at risk', async () => {
    const { clock, watch, state, over } = start(['a', 'b']);
    watch.begin(over.signal);
    await clock.advance(2 * MINUTE_MS);
    expect(state.calls.splice(0)).toEqual(['unrouted orders g 2', 'open 2']);
    await clock.advance(40 * MINUTE_MS);
    expect(state.calls).toEqual([]);
    await clock.advance(10 * MINUTE_MS);
    expect(state.calls).toEqual(['unrouted orders g 2', 'open 2']);
    over.abort();
  });

  test('checks backlogs that are at risk every minute, and no others', async () => {
    const { clock, watch, state, over } = start(['a', 'b']);
    state.unrouted.set('a', clock.wallMs() - HOUR_MS);
    watch.begin(over.signal);
    await clock.advance(10.5 * MINUTE_MS);
    expect(state.calls.filter(call => call === 'unrouted orders g 2')).toHaveLength(1);
    expect(state.calls.filter(call => call === 'unrouted orders g 1').length).toBeGreaterThanOrEqual(8);
    expect(state.calls.filter(call => call === 'unrouted orders g 1').length).toBeLessThanOrEqual(10);
    over.abort();
    state.calls.length = 0;
    await clock.advance(10 * MINUTE_MS);
    expect(state.calls).toEqual([]);
  });

  test('only the leader reports the number of subscriptions, and only for existing workspaces', async () => {
    const { clock, watch, state, over } = start(['a', 'b']);
    for (const name of ['a', 'b']) state.unrouted.set(name, clock.wallMs() - HOUR_MS);
    watch.begin(over.signal);
    await clock.advance(2 * MINUTE_MS);
    expect(watch.countAtRisk()).toBe(2);
    state.tenants = [];
    await clock.advance(2 * MINUTE_MS);
    expect(watch.countAtRisk()).toBe(0);
    state.tenants = ['acme'];
    await clock.advance(2 * MINUTE_MS);
    expect(watch.countAtRisk()).toBe(2);
    over.abort();
    await clock.advance(0);
    expect(watch.countAtRisk()).toBe(0);
    const next = new AbortController();
    watch.begin(next.signal);
    await clock.advance(2 * MINUTE_MS);
    watch.begin(next.signal);
    await clock.advance(2 * MINUTE_MS);
    expect(watch.countAtRisk()).toBe(2);
    next.abort();
    await clock.advance(0);
  });

  test('continues in a long inbox until it finds an open event or has passed the limit', async () => {
    const { clock, watch, state } = start();
    const old = clock.wallMs() - HOUR_MS;
    state.open.set('a', [
      { ms: old, exact: false, settledTo: '1-0' },
      { ms: old + 1, exact: false, settledTo: '2-0' },
      { ms: old + 2, exact: true, settledTo: '2-0' },
    ]);
    await watch.check('acme');
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(true);
    expect(state.settled).toEqual(['0-0', '1-0', '2-0']);
    await watch.check('acme');
    expect(state.settled.at(-1)).toBe('2-0');
    const { clock: clock2, watch: watch2, state: state2 } = start();
    state2.open.set('a', [
      { ms: clock2.wallMs() - HOUR_MS, exact: false, settledTo: '1-0' },
      { ms: clock2.wallMs() - 1, exact: false, settledTo: '2-0' },
    ]);
    await watch2.check('acme');
    expect(watch2.isAtRisk('acme', 'uid-a')).toBe(false);
    expect(state2.settled).toEqual(['0-0', '1-0']);
  });

  test('reads 20 pages of an inbox in each check, and does not report a backlog before it finds an open event', async () => {
    const { clock, watch, state } = start();
    const ms = clock.wallMs() - HOUR_MS;
    const pages = Array.from({ length: 30 }, (_, n) => ({ ms, exact: n === 29, settledTo: `${n + 1}-0` }));
    state.open.set('a', pages);
    await watch.check('acme');
    expect([state.settled.length, watch.isAtRisk('acme', 'uid-a')]).toEqual([20, false]);
    await watch.check('acme');
    expect([state.settled[20], watch.isAtRisk('acme', 'uid-a')]).toEqual(['20-0', true]);
  });

  test('ignores subscriptions that are not admitted, tolerates an unavailable Redis, and starts again with each term', async () => {
    const { clock, watch, state, over } = start();
    state.failing = true;
    watch.begin(over.signal);
    await clock.advance(2 * MINUTE_MS);
    expect(watch.isAtRisk('acme', 'uid-a')).toBeUndefined();
    state.failing = false;
    await clock.advance(2 * MINUTE_MS);
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
    watch.begin(over.signal);
    expect(watch.isAtRisk('acme', 'uid-a')).toBeUndefined();
    await clock.advance(2 * MINUTE_MS);
    expect(watch.isAtRisk('acme', 'uid-a')).toBe(false);
    state.admitted = false;
    await watch.check('acme');
    expect(watch.isAtRisk('acme', 'uid-a')).toBeUndefined();
    over.abort();
    await clock.advance(0);
    expect(clock.pendingTimers()).toBe(0);
  });
});
