import { describe, expect, test } from 'vitest';
import type { SubscriptionRoute } from '../../core/routing/routes.ts';
import { parseRow } from '../../part/gate/subscription-row.ts';
import { partKeys, slotOf } from '../../part/keys.ts';
import { createRunClient, partOfRun } from '../../part/sandbox/run-client.ts';
import { takeOverAll, takeOverKey } from '../../part/sandbox/take-over.ts';
import { readView } from '../../part/sandbox/view.ts';
import { QUEUE, START_MS } from '../../record/testing/tenant.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createSandbox, sealed, sumUp } from './testing/sandbox.ts';

const RUN = 'run-1';
type Subs = Readonly<Record<string, Partial<SubscriptionRoute>>>;

describe('the copy of the state of production for a run', () => {
  onEachRedis(redis => {
    /** Integrations with these subscriptions, and the active group keys `a` and `b`. */
    async function start(subs: Subs = { x: {} }) {
      const s = createSandbox(redis());
      const { t } = s;
      const say = (now: Subs) => {
        const routes = Object.entries(now).map(([name, sub]) => [
          name,
          { sub: { endpoint: sealed(name, []), ...sub } },
        ]);
        return t.apply(t.routes(Object.fromEntries(routes)));
      };
      await say(subs);
      for (const name of Object.keys(subs)) for (const groupKey of ['a', 'b']) await t.activate(name, groupKey);
      const ofRun = createRunClient(t.client, t.tenant, RUN, START_MS + 86_400_000);
      const part = partOfRun(t.tenant, QUEUE);
      const stream = { redis: t.client, ofRun, tenant: t.tenant, queue: QUEUE };
      const lines = async () => {
        const report = await s.report(RUN, { limit: 250 });
        if (report === undefined) throw new Error('no run');
        return sumUp(s, report).map(line => line.join(', '));
      };
      return {
        s,
        t,
        say,
        part,
        stream,
        lines,
        publish: (id: string, groupKey = 'a') => s.publish(RUN, groupKey, {}, id),
        loseRecord: () => {
          const { integration, sub } = t.inboxOf('x');
          return redis().call('del', integrationKeys(integration).sub(sub));
        },
        takeKey: (groupKey = 'a') => takeOverKey(stream, groupKey),
        takeAll: () => takeOverAll(stream),
        row: async (name = 'x', inc = 'inc1') => {
          const text = await ofRun.call('hget', partKeys(part).subs, slotOf(`sub_${name}`, inc));
          return typeof text === 'string' ? parseRow(text) : undefined;
        },
        viewOfRun: (...groupKeys: string[]) => readView(ofRun, part, groupKeys, []),
        viewOfProduction: (...groupKeys: string[]) => readView(t.client, t.part, groupKeys, []),
      };
    }

    test('contains the row, except for the data of the endpoint', async () => {
      const { takeKey, row, say } = await start({ x: { cap: 5, maxPerSecond: 7, unordered: true } });
      expect(await takeKey()).toBe(true);
      expect(await row()).toMatchObject({ route: 'open', send: 'open', cap: 5, unordered: true });
      expect((await row())?.maxPerSecond).toBeUndefined();
      await say({ x: { cap: 6, send: 'held' } });
      await takeKey();
      expect(await row()).toMatchObject({ send: 'held', cap: 6, unordered: false });
      await say({ x: { endpoint: '' } });
      await takeKey();
      expect((await row())?.send).toBe('held');
    });

    test('contains a disabled endpoint until its owner enables it', async () => {
      const { t, takeKey, row, say } = await start();
      await t.disable('x');
      await takeKey();
      expect((await row())?.send).toBe('held');
      await say({ x: { enabledMs: START_MS } });
      await takeKey();
      expect((await row())?.send).toBe('held');
      await say({ x: { enabledMs: START_MS + 1 } });
      await takeKey();
      expect((await row())?.send).toBe('open');
    });

    test('contains a single group key without changing the rest of its subscriptions', async () => {
      const { t, say, s, publish, row, lines } = await start({ x: {}, y: {} });
      await publish('first', 'a');
      await t.deactivate('x', 'a');
      await publish('closed', 'a');
      expect(await row()).toMatchObject({ route: 'open', send: 'open' });
      await publish('other', 'b');
      await say({ x: { route: 'paused' }, y: {} });
      await publish('paused', 'b');
      await t.deactivate('y', 'b');
      await publish('behind', 'b');
      await s.finish(RUN);
      expect(await lines()).toEqual([
        'first, x routed pending, y routed delivered 200',
        'closed, y routed delivered 200, x not_routed not_activated',
        'other, x routed delivered 200, y routed pending',
        'paused, y routed pending, x waiting paused',
        'behind, x waiting paused, y not_routed not_activated',
      ]);
    });

    test('contains a pause that was skipped when it ended, even if another one has started', async () => {
      const { t, say, s, publish, lines } = await start();
      await say({ x: { route: 'paused', onUnblock: 'skip' } });
      await publish('first');
      t.clock.ms += 1_000;
      await say({ x: {} });
      await say({ x: { route: 'paused' } });
      await publish('second', 'b');
      await s.finish(RUN);
      await say({ x: {} });
      await publish('third');
      await s.finish(RUN);
      expect(await lines()).toEqual([
        'first, x not_routed skipped_to_now',
        'second, x routed delivered 200',
        'third, x routed delivered 200',
      ]);
    });

    test('opens a group key again that no other subscription uses', async () => {
      const { t, s, publish, lines } = await start();
      await publish('one');
      await t.deactivate('x', 'a');
      await s.finish(RUN);
      expect(await lines()).toEqual(['one, x routed pending']);
      await t.activate('x', 'a');
      await s.finish(RUN);
      expect(await lines()).toEqual(['one, x routed delivered 200']);
    });

    test('does not skip anything for a pause that is not skipped, regardless of earlier skips', async () => {
      const { t, say, s, publish, lines } = await start({ x: { route: 'paused', onUnblock: 'skip' } });
      await t.ingest(['a']);
      t.clock.ms += 1_000;
      await say({ x: {} });
      await say({ x: { route: 'paused' } });
      await publish('waits');
      await say({ x: {} });
      await s.finish(RUN);
      expect(await lines()).toEqual(['waits, x routed delivered 200']);
    });

    test('contains the skipped pauses, even if the record changes', async () => {
      const { t, say, s, publish, lines, loseRecord } = await start({ x: { route: 'paused', onUnblock: 'skip' } });
      await publish('skipped');
      await say({ x: {} });
      await loseRecord();
      await say({ x: { route: 'paused' } });
      t.clock.ms += 1_000;
      await publish('waits', 'b');
      await s.finish(RUN);
      await loseRecord();
      await say({ x: {} });
      await s.finish(RUN);
      expect(await lines()).toEqual(['skipped, x not_routed skipped_to_now', 'waits, x routed delivered 200']);
    });

    test('contains two pauses that were skipped in the same millisecond', async () => {
      const { say, s, publish, lines } = await start({ x: { route: 'paused', onUnblock: 'skip' } });
      await say({ x: {} });
      await say({ x: { route: 'paused', onUnblock: 'skip' } });
      await publish('skipped');
      await say({ x: {} });
      await s.finish(RUN);
      expect(await lines()).toEqual(['skipped, x not_routed skipped_to_now']);
    });

    test('contains a subscription that replaces another one', async () => {
      const { t, say, s, publish, row, lines } = await start();
      await publish('first');
      await s.finish(RUN);
      await say({ x: { inc: 'inc2' } });
      await redis().call('hset', t.keys.keys, 'a', `${slotOf('sub_x', 'inc2')}${'0'.repeat(15)}`);
      await publish('second');
      await s.finish(RUN);
      expect(await row('x', 'inc1')).toMatchObject({ route: 'closed', send: 'held' });
      expect(await row('x', 'inc2')).toMatchObject({ route: 'open', send: 'open' });
      expect((await lines())[1]).toBe('second, x routed delivered 200');
    });

    test('contains group keys with several fields, and their closed subscriptions', async () => {
      const names = Array.from({ length: 300 }, (_, i) => `s${i}`);
      const { t, takeKey, takeAll, viewOfRun, viewOfProduction } = await start(
        Object.fromEntries(names.map(name => [name, {}])),
      );
      const same = async (size: number) => {
        const [own, there] = [await viewOfRun('a', 'b'), await viewOfProduction('a', 'b')];
        expect(own?.active.get('a')).toEqual(there?.active.get('a'));
        expect(own?.active.get('a')?.size).toBe(size);
      };
      await takeKey();
      await same(300);
      expect((await viewOfRun('b'))?.active.get('b')?.size).toBe(0);
      for (const name of names.slice(0, 200)) await t.deactivate(name, 'a');
      await takeAll();
      await same(100);
      await t.activate('s7', 'a');
      await takeKey();
      await same(101);
    });

    test('is empty if control data is missing, and shows that a stream was deleted', async () => {
      const { t, takeKey, takeAll, row } = await start();
      const tenant = tenantKeys(t.tenant);
      await takeKey();
      await redis().call('hdel', t.keys.keys, '');
      expect([await takeKey(), await takeAll()]).toEqual([false, false]);
      await redis().call('hset', t.keys.keys, '', '1');
      await redis().call('hdel', t.keys.meta, 'ready');
      expect([await takeKey(), await takeAll()]).toEqual([false, false]);
      await redis().call('del', t.keys.meta);
      expect(await takeAll()).toBe(false);
      expect((await row())?.route).toBe('open');
      await redis().call('hdel', tenant.index, `q:${QUEUE}`);
      expect(await takeAll()).toBe(true);
      expect(await row()).toMatchObject({ route: 'closed', send: 'held' });
      await redis().call('del', tenant.meta);
      expect(await takeAll()).toBe(false);
    });
  });
});
