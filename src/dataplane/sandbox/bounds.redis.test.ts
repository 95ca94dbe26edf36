import { describe, expect, onTestFinished, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { SANDBOX_LIMITS, type SandboxLimits } from '../../part/sandbox/sandbox-store.ts';
import { connectRedis } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { runMember } from './run-view.ts';
import { createSandbox, driverOn, sealed, sumUp } from './testing/sandbox.ts';

const RUN = 'bounded';

describe('a run', () => {
  async function start(names: readonly string[], limits?: SandboxLimits) {
    const redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
    onTestFinished(() => redis.close());
    const s = createSandbox(redis, limits);
    const sub = (name: string, more: object) =>
      [name, { sub: { endpoint: sealed(name, [5_000]), unordered: true, ...more } }] as const;
    const say = (more: object) => s.t.apply(s.t.routes(Object.fromEntries(names.map(name => sub(name, more)))));
    await say({});
    for (const name of names) await s.t.activate(name, 'a');
    const read = async () => {
      const report = await s.report(RUN, { limit: 250 });
      if (report === undefined) throw new Error('no run');
      return report;
    };
    return { s, read, say };
  }

  test('a run that has made all of its deliveries does not make any more, and reports the events that it did not route', async () => {
    const { s, read, say } = await start(['x', 'y'], { ...SANDBOX_LIMITS, deliveriesOfRun: 130 });
    await say({ route: 'paused' });
    for (let i = 0; i < 300; i++) await s.publish(RUN, 'a', {}, `e${i}`);
    await say({});
    await s.finish(RUN);
    const { totals, nextCursor } = await read();
    expect(totals).toMatchObject({ events: 300, pending: 0 });
    // The maximum is exceeded by less than one step, which makes 64 deliveries.
    expect(totals.deliveries).toBe(3 * 64);
    const last = await s.report(RUN, { cursor: nextCursor ?? '' });
    expect(last?.data.at(-1)?.integrations.map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['waiting', 'run_full'],
      ['waiting', 'run_full'],
    ]);
    expect((await s.publish(RUN, 'a')).answer).toBe('RUN_FULL');
    expect(await s.finish(RUN)).toBe(1);
  });

  test('counts an event that is routed when it is accepted', async () => {
    const { s, read } = await start(['x', 'y'], { ...SANDBOX_LIMITS, deliveriesOfRun: 5 });
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push((await s.publish(RUN, 'a')).answer);
    expect(answers).toEqual(['OK', 'OK', 'OK', 'RUN_FULL']);
    await s.finish(RUN);
    expect((await read()).totals).toMatchObject({ events: 3, deliveries: 6, delivered: 6 });
  });

  test('an event with more deliveries than a step makes is routed by the driver, and counted', async () => {
    const names = Array.from({ length: 1_100 }, (_, i) => `w${i}`);
    const { s, read, say } = await start(names);
    await say({ endpoint: '' });
    expect((await s.publish(RUN, 'a', {}, 'wide')).answer).toBe('OK');
    expect((await s.publish(RUN, 'none', {}, 'behind')).answer).toBe('OK');
    expect((await read()).totals.deliveries).toBe(0);
    await s.finish(RUN);
    const { totals, data } = await read();
    expect(totals).toMatchObject({ events: 2, deliveries: 1_100, pending: 1_100, tokens: 1_100 });
    expect(data.map(({ moreIntegrations }) => moreIntegrations)).toEqual([1_000, 1_000]);
    expect(data.map(({ integrations }) => integrations[0]?.verdict)).toEqual(['routed', 'not_routed']);
    expect(await s.store.readRoom(s.t.tenant, RUN)).toBe(SANDBOX_LIMITS.deliveriesOfRun - 1_100);
  }, 60_000);

  test('after every few attempts, other runs are processed, and after its turn, the run is returned', async () => {
    const { s, read } = await start(['x']);
    for (let i = 0; i < 200; i++) await s.publish(RUN, 'a', {}, `e${i}`);
    let clock = 0;
    const ways: number[] = [];
    const drive = driverOn(s.t.client, s.t.nowMs, undefined, {
      monotonicMs: () => (clock += 1),
      giveWay: async busyMs => {
        ways.push(busyMs);
        clock += 700;
      },
    });
    const next = await drive(runMember(s.t.tenant, RUN));
    const { totals } = await read();
    expect(totals.delivered).toBeGreaterThan(0);
    expect(totals.delivered).toBeLessThan(200);
    // This is after the routing, and after every 32 attempts.
    expect(ways.length).toBe(1 + totals.delivered / 32);
    expect(Math.min(...ways)).toBeGreaterThan(0);
    expect(next).toBeLessThan(s.t.clock.ms + 100);
    await s.finish(RUN, drive);
    expect((await read()).totals).toMatchObject({ delivered: 200, pending: 0 });
  });

  test('pages contain every event once, in order, and at most as many results as a response may contain', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `p${i}`);
    const { s } = await start(names);
    for (let i = 0; i < 70; i++) {
      await s.publish(RUN, i % 2 === 0 ? 'a' : 'closed', {}, `e${i}`);
      s.t.clock.ms += 1;
    }
    await s.finish(RUN);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await s.report(RUN, { limit: 250, cursor });
      const verdicts = page?.data.flatMap(({ integrations }) => integrations) ?? [];
      expect(verdicts.length).toBeLessThanOrEqual(1_000);
      expect(new Set(verdicts.map(({ verdict }) => verdict))).toEqual(new Set(['routed', 'not_routed']));
      for (const [id, ...lines] of sumUp(s, page as never)) {
        seen.push(id as string);
        expect([id, new Set(lines.map(line => line.replace(/^\w+ /, '')))]).toEqual([
          id,
          new Set([Number((id as string).slice(1)) % 2 === 0 ? 'routed delivered 200' : 'not_routed not_activated']),
        ]);
      }
      cursor = page?.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: 70 }, (_, i) => `e${i}`));
  });
});
