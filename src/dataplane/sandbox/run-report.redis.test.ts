import { describe, expect, test } from 'vitest';
import { START_MS } from '../../record/testing/tenant.ts';
import { tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createRunReports } from './run-report.ts';
import { createSandbox, type Sandbox, sealed, sumUp } from './testing/sandbox.ts';

const RUN = 'run-1';

async function read(s: Sandbox, page = {}) {
  const report = await s.report(RUN, page);
  if (report === undefined) throw new Error('no run');
  return report;
}

describe('the report of a run', () => {
  onEachRedis(redis => {
    const subscribed = (name: string, more: object = {}) => ({ sub: { endpoint: sealed(name, [5_000]), ...more } });

    /** `x` has a subscription, and the others are granted without one. The group key `a` is active for `x`. */
    async function start(...others: readonly string[]): Promise<Sandbox> {
      const s = createSandbox(redis());
      const { t } = s;
      const routes = t.routes({ x: subscribed('x') });
      const granted = { state: 'active' as const, sinceMs: START_MS - 1_000, subscriptions: {} };
      const grants = Object.fromEntries(others.map(name => [t.nameOf(name), granted]));
      await t.apply({ ...routes, integrations: { ...routes.integrations, ...grants } });
      await t.activate('x', 'a');
      return s;
    }

    test('contains what was published, and when the run begins and ends', async () => {
      const s = await start();
      await s.publish(RUN, undefined, {}, 'plain');
      s.t.clock.ms += 5;
      await s.publish(RUN, 'a', { failCode: 503, failCount: 1 }, 'failing', 'body', { type: 'order.paid' });
      const { begunAt, endsAt, data } = await read(s);
      const [begun, later] = [START_MS, START_MS + 5].map(ms => new Date(ms).toISOString());
      expect([begunAt, endsAt]).toEqual([begun, new Date(START_MS + 24 * 3_600_000).toISOString()]);
      const common = { queue: 'orders', bytes: 4, moreIntegrations: 0 };
      expect(data).toMatchObject([
        { ...common, id: 'plain', groupKey: null, type: null, acceptedAt: begun, failCode: null, failCount: null },
        { ...common, id: 'failing', groupKey: 'a', type: 'order.paid', acceptedAt: later, failCode: 503, failCount: 1 },
      ]);
    });

    test('has pages of 50 events by default, and no cursor after the last event', async () => {
      const s = await start();
      for (let n = 0; n < 51; n++) await s.publish(RUN, undefined, {}, `e${n}`);
      const first = await read(s);
      expect([first.data.length, first.totals.events]).toEqual([50, 51]);
      const last = await read(s, { cursor: first.nextCursor });
      expect([last.data.map(({ id }) => id), last.nextCursor]).toEqual([['e50'], null]);
      expect((await read(s, { limit: 51 })).nextCursor).toBeNull();
    });

    test('only reads the events of its page, and each value once', async () => {
      const s = await start();
      for (let n = 0; n < 30; n++) await s.publish(RUN, 'a', {}, `e${n}`);
      await s.finish(RUN);
      const calls: unknown[][] = [];
      const call: typeof s.t.client.call = (...given) => {
        calls.push(given);
        return s.t.client.call(...given);
      };
      const reports = createRunReports({ ...s.t.client, call }, s.t.nowMs);
      const page = await reports.read(s.t.tenant, RUN, { limit: 20 });
      expect(page).toMatchObject({ totals: { events: 30, delivered: 30 }, data: { length: 20 } });
      const counts = calls.filter(([command]) => command === 'xrange').map(([, , ...range]) => range);
      expect(counts).toEqual([['-', '+', 'COUNT', 22]]);
      expect(new Set(calls.map(String)).size).toBe(calls.length);
      const next = await reports.read(s.t.tenant, RUN, { cursor: page?.nextCursor ?? '' });
      expect([next?.data.map(({ id }) => id), next?.nextCursor]).toEqual([
        Array.from({ length: 10 }, (_, n) => `e${n + 20}`),
        null,
      ]);
    });

    test('contains integrations without a subscription by name, unless the workspace has too many names', async () => {
      const s = await start('z', 'm', 'b');
      await s.publish(RUN, 'a', {}, 'e');
      await s.finish(RUN);
      const none = (name: string) => `${name} not_routed not_subscribed`;
      expect(sumUp(s, await read(s))).toEqual([['e', 'x routed delivered 200', none('b'), none('m'), none('z')]]);
      const { index } = tenantKeys(s.t.tenant);
      const more = Array.from({ length: 1_000 }, (_, n) => [`k:${n}`, '1']).flat();
      await redis().call('hset', index, ...more);
      expect(sumUp(s, await read(s))).toEqual([['e', 'x routed delivered 200']]);
    });

    test('contains integrations that are pending or closed, with the reason', async () => {
      const s = createSandbox(redis());
      const { t } = s;
      const states = { pending: 'pending', declined: 'closed' } as const;
      const all = Object.entries(states).map(([name, state]) => [name, { state, ...subscribed(name) }] as const);
      await t.apply(t.routes(Object.fromEntries(all)));
      await s.publish(RUN, 'a', {}, 'e');
      await s.finish(RUN);
      const [event] = sumUp(s, await read(s));
      expect(event?.toSorted()).toEqual([
        'declined not_routed integration_closed',
        'e',
        'pending not_routed integration_pending',
      ]);
    });

    test('shows the attempts of a subscription that was replaced after them', async () => {
      const s = await start();
      await s.publish(RUN, 'a', {}, 'e');
      await s.finish(RUN);
      const before = (await read(s)).data;
      expect(before[0]?.integrations[0]?.delivery?.expected).toMatchObject({ outcome: 'delivered' });
      await s.t.apply(s.t.routes({ x: subscribed('x', { inc: 'inc2' }) }));
      expect((await read(s)).data).toEqual(before);
    });

    test('an open event of an open subscription does not wait for a pause', async () => {
      const s = await start();
      await s.t.apply(s.t.routes({ x: subscribed('x', { route: 'paused', send: 'held' }) }));
      await s.publish(RUN, 'a', {}, 'e');
      await s.finish(RUN);
      expect(sumUp(s, await read(s))).toEqual([['e', 'x waiting paused']]);
      await s.t.apply(s.t.routes({ x: subscribed('x') }));
      expect(sumUp(s, await read(s))).toEqual([['e', 'x waiting']]);
    });
  });
});
