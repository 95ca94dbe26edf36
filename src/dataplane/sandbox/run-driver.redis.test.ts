import { describe, expect, test } from 'vitest';
import { START_MS } from '../../record/testing/tenant.ts';
import { sandboxKeys, slotTag } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { runMember } from './run-view.ts';
import { createSandbox, driverOn, dumpProduction, type Sandbox, sealed, sumUp } from './testing/sandbox.ts';

const RUN = 'run-1';
const RETRY_MS = [5_000, 300_000];

describe('a run', () => {
  onEachRedis(redis => {
    /**
     * `x` and `y` subscribe, `z` has a grant without a subscription. The group key `a` is open for `x` and `y`, and `b`
     * only for `y`.
     */
    async function start(sub: object = {}): Promise<Sandbox> {
      const s = createSandbox(redis());
      const { t } = s;
      const routes = t.routes({
        x: { sub: { endpoint: sealed('x', RETRY_MS), ...sub } },
        y: { sub: { endpoint: sealed('y', []) } },
      });
      const granted = { state: 'active' as const, sinceMs: START_MS - 1_000, subscriptions: {} };
      await t.apply({ ...routes, integrations: { ...routes.integrations, [t.nameOf('z')]: granted } });
      await t.activate('x', 'a');
      for (const groupKey of ['a', 'b']) await t.activate('y', groupKey);
      return s;
    }

    async function read(s: Sandbox, run = RUN) {
      const report = await s.report(run);
      if (report === undefined) throw new Error('no run');
      return report;
    }

    test('an event is routed according to the gate, with the requested responses', async () => {
      const s = await start();
      expect(await s.publish(RUN, 'a', { failCode: 503, failCount: 1 }, 'first')).toMatchObject({ answer: 'OK' });
      await s.publish(RUN, 'b', { failCount: 1 }, 'second');
      await s.publish(RUN, undefined, {}, 'third');
      await s.finish(RUN);
      const report = await read(s);
      expect(sumUp(s, report)).toEqual([
        ['first', 'x routed delivered 503 200', 'y routed dead 503', 'z not_routed not_subscribed'],
        ['second', 'y routed dead 500', 'x not_routed not_activated', 'z not_routed not_subscribed'],
        ['third', ...['x', 'y', 'z'].map(each => `${each} not_routed missing_group_key`)],
      ]);
      expect(report.totals).toEqual({ events: 3, deliveries: 3, pending: 0, delivered: 1, dead: 2, tokens: 3 });
      const delivery = report.data[0]?.integrations[0]?.delivery;
      expect(delivery?.expected).toMatchObject({
        outcome: 'delivered',
        attempts: [
          { status: 503, delayMs: 0 },
          { status: 200, delayMs: 5_000, compressedDelayMs: 1 },
        ],
      });
      expect(delivery?.headers).toEqual(
        expect.arrayContaining([
          { name: 'webhook-id', value: 'first' },
          { name: 'webhook-timestamp', value: `${START_MS / 1_000}` },
          { name: 'webhook-signature', value: 'v1,…' },
          { name: 'x-own', value: '…' },
        ]),
      );
      expect(JSON.stringify(report)).not.toContain('a secret of the partner');
    });

    test('a CloudEvent contains the attributes that a delivery would have', async () => {
      const s = await start();
      const attributes = { specversion: '1.0', id: 'c1', source: '/shop', type: 'order.paid', subject: 'caf%C3%A9' };
      await s.publish(RUN, 'a', {}, 'binary', 'body', { attributes });
      await s.publish(RUN, 'a', {}, 'structured', '{}', { contentType: 'application/cloudevents+json' });
      await s.finish(RUN);
      const shown = (await read(s)).data.map(({ integrations }) =>
        (integrations[0]?.delivery?.headers ?? []).filter(({ name }) => name.startsWith('ce-')),
      );
      const sent = Object.entries(attributes).map(([name, value]) => ({ name: `ce-${name}`, value }));
      expect(shown).toEqual([sent, []]);
    });

    test('only reads production, and leaves no keys of the run', async () => {
      const s = await start();
      const before = await dumpProduction(redis(), s.t);
      expect(before.size).toBeGreaterThan(4);
      for (const groupKey of ['a', 'b', undefined]) await s.publish(RUN, groupKey, { failCode: 410, failCount: 2 });
      await s.finish(RUN);
      expect((await read(s)).totals).toMatchObject({ deliveries: 3, pending: 0 });
      expect(await dumpProduction(redis(), s.t)).toEqual(before);
      const tag = slotTag(sandboxKeys(s.t.tenant, RUN).meta);
      const keys = (await redis().callAll('KEYS', `${tag.replace(/}$/, '')}*`)).flat() as string[];
      const ends = await Promise.all(keys.map(key => redis().call('pexpiretime', key)));
      expect(new Set(ends)).toEqual(new Set([START_MS + 86_400_000]));
      expect(keys.length).toBeGreaterThan(12);
    });

    test('a 410 shows that it would disable the endpoint, and the retries continue', async () => {
      const s = await start();
      await s.publish(RUN, 'a', { failCode: 410, failCount: 1 }, 'gone');
      await s.publish(RUN, 'a', {}, 'next');
      await s.finish(RUN);
      const report = await read(s);
      expect(sumUp(s, report).map(event => event.slice(0, 3))).toEqual([
        ['gone', 'x routed delivered 410 200', 'y routed dead 410'],
        ['next', 'x routed delivered 200', 'y routed delivered 200'],
      ]);
      const [gone, next] = report.data.map(({ integrations }) =>
        integrations.map(each => each.delivery?.disablesEndpoint),
      );
      expect([gone?.slice(0, 2), next?.slice(0, 2)]).toEqual([
        [true, true],
        [false, false],
      ]);
    });

    test('a later event of a group key waits for the earlier event, and other keys do not', async () => {
      const s = await start();
      await s.t.activate('x', 'b');
      await s.publish(RUN, 'a', { failCode: 500, failCount: 2 }, 'first');
      await s.publish(RUN, 'a', {}, 'behind');
      await s.publish(RUN, 'b', {}, 'beside');
      await s.finish(RUN);
      const at = new Map<string, string[]>();
      for (const event of (await read(s)).data) {
        const mine = event.integrations.find(({ integrationPublicId }) => integrationPublicId === s.t.nameOf('x'));
        at.set(event.id, mine?.delivery?.attempts.map(each => each.at) ?? []);
      }
      const last = at.get('first')?.at(-1) ?? '';
      expect(at.get('first')).toHaveLength(3);
      expect((at.get('behind')?.[0] ?? '') >= last).toBe(true);
      expect((at.get('beside')?.[0] ?? '') < last).toBe(true);
    });

    test('a pause holds affected events, which continue after it', async () => {
      const s = await start();
      const { t } = s;
      await s.publish(RUN, 'a', { failCode: 500, failCount: 1 }, 'before');
      const drive = s.driver();
      const dueMs = await drive(runMember(t.tenant, RUN));
      const pause = (route: 'open' | 'paused') => {
        const sub = { route, send: route === 'open' ? ('open' as const) : ('held' as const) };
        return t.apply(
          t.routes({
            x: { sub: { endpoint: sealed('x', RETRY_MS), ...sub } },
            y: { sub: { endpoint: sealed('y', []) } },
          }),
        );
      };
      await pause('paused');
      t.clock.ms = dueMs ?? t.clock.ms;
      await s.publish(RUN, 'a', {}, 'meanwhile');
      await s.finish(RUN, drive);
      expect(sumUp(s, await read(s)).map(event => event.find(each => each.startsWith('x')))).toEqual([
        'x routed retrying 500 held by endpoint_held',
        'x waiting paused',
      ]);
      await pause('open');
      await s.finish(RUN, drive);
      expect(sumUp(s, await read(s)).map(event => event.find(each => each.startsWith('x')))).toEqual([
        'x routed delivered 500 200',
        'x routed delivered 200',
      ]);
    });

    test('a pause that skips its backlog also skips waiting events of the run', async () => {
      const s = await start();
      const { t } = s;
      const say = (sub: object) => {
        const x = { sub: { endpoint: sealed('x', RETRY_MS), ...sub } };
        return t.apply(t.routes({ x, y: { sub: { endpoint: sealed('y', []) } } }));
      };
      await say({ route: 'paused', send: 'held', onUnblock: 'skip' });
      await s.publish(RUN, 'a', {}, 'skipped');
      await s.finish(RUN);
      t.clock.ms += 1_000;
      await say({});
      await s.publish(RUN, 'a', {}, 'later');
      await s.finish(RUN);
      expect(sumUp(s, await read(s)).map(event => event.find(each => each.startsWith('x')))).toEqual([
        'x not_routed skipped_to_now',
        'x routed delivered 200',
      ]);
    });

    test('holds events of a closed group key, and continues when it is opened again', async () => {
      const s = await start();
      await s.publish(RUN, 'a', { failCode: 500, failCount: 1 }, 'one');
      const drive = s.driver();
      s.t.clock.ms = (await drive(runMember(s.t.tenant, RUN))) ?? 0;
      await s.t.deactivate('x', 'a');
      await s.finish(RUN, drive);
      expect(sumUp(s, await read(s))[0]).toContain('x routed retrying 500');
      await s.t.activate('x', 'a');
      await s.finish(RUN, drive);
      expect(sumUp(s, await read(s))[0]).toContain('x routed delivered 500 200');
    });

    test('a subscription without an endpoint receives its events without attempts', async () => {
      const s = await start({ endpoint: '' });
      await s.publish(RUN, 'a', {}, 'one');
      await s.finish(RUN);
      expect(sumUp(s, await read(s))[0]).toContain('x routed pending held by no_endpoint');
    });

    test('an account without tokens pauses production, but no run', async () => {
      const s = await start();
      const { t } = s;
      await t.control.setAccount(1, t.account, 'Free', 0);
      const sub = { sub: { endpoint: sealed('x', []) } };
      await t.apply({ ...t.routes({ x: sub }), plan: 'Free' });
      await s.publish(RUN, 'a', {}, 'one');
      await s.finish(RUN);
      expect((await read(s)).totals).toMatchObject({ deliveries: 1, delivered: 1, tokens: 1 });
      expect((await t.control.readBalance(t.account))?.usedTokens).toBe(0);
    });

    test('an endpoint that is disabled in production holds its events in a run', async () => {
      const s = await start();
      await s.t.disable('x');
      await s.publish(RUN, 'a', {}, 'one');
      await s.finish(RUN);
      expect(sumUp(s, await read(s))[0]).toContain('x routed pending held by endpoint_disabled');
      expect(sumUp(s, await read(s))[0]).toContain('y routed delivered 200');
    });

    test('a stream that cannot be read is repaired and tried again in a second, without attempts until then', async () => {
      const s = await start();
      const { t } = s;
      await s.publish(RUN, 'a', {}, 'one');
      const alarms: string[] = [];
      const drive = driverOn(t.client, t.nowMs, undefined, { alarm: slot => void alarms.push(slot) });
      await redis().call('hdel', t.keys.meta, 'ready');
      expect(await drive(runMember(t.tenant, RUN))).toBe(START_MS + 1_000);
      expect(alarms).toEqual([`q:${t.tenant}:orders`]);
      expect((await read(s)).totals).toMatchObject({ deliveries: 2, pending: 2, delivered: 0 });
      await redis().call('hset', t.keys.meta, 'ready', '1');
      expect(await drive(runMember(t.tenant, RUN))).toBeNull();
      expect((await read(s)).totals).toMatchObject({ pending: 0, delivered: 2 });
      expect(alarms).toHaveLength(1);
    });

    test('retries that are due at about the same time are made together, and not after the end of the run', async () => {
      const s = await start();
      const { t } = s;
      await s.publish(RUN, 'a', { failCode: 500, failCount: 1 }, 'one');
      const drive = s.driver();
      expect(await drive(runMember(t.tenant, RUN))).toBe(START_MS + 20);
      t.clock.ms += 86_400_000 - 1;
      await s.publish(RUN, 'a', { failCode: 500, failCount: 1 }, 'two');
      expect(await drive(runMember(t.tenant, RUN))).toBeNull();
      const last = (await read(s)).data.at(-1)?.integrations[0]?.delivery;
      expect([last?.state, last?.attempts.length]).toEqual(['retrying', 1]);
    });

    test('runs are isolated: each of them has separate ids and a separate order', async () => {
      const s = await start();
      const answers = [];
      for (const run of [RUN, RUN, 'run-2']) answers.push(await s.publish(run, 'a', {}, 'same'));
      expect(answers.map(({ answer }) => answer)).toEqual(['OK', 'DUP', 'OK']);
      expect((await s.t.ingest(['a'])).length).toBe(1);
      for (const run of [RUN, 'run-2']) await s.finish(run);
      expect((await read(s)).totals.events).toBe(1);
      expect((await read(s, 'run-2')).totals).toMatchObject({ events: 1, delivered: 2 });
      expect(await s.report('run-3')).toBeUndefined();
    });
  });
});
