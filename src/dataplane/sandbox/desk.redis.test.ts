import { describe, expect, test } from 'vitest';
import { SANDBOX_LIMITS } from '../../part/sandbox/sandbox-store.ts';
import { event, QUEUE } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createSandboxDesk } from './desk.ts';
import { runMember } from './run-view.ts';
import { createSandbox, sealed } from './testing/sandbox.ts';

const RUN = 'run-1';

describe('the desk of ingress', () => {
  onEachRedis(redis => {
    /** `x` subscribes with a changed subscription. Its group key `a` is active. */
    async function start(sub: object = {}, deliveriesOfRun = 2) {
      const limits = { ...SANDBOX_LIMITS, deliveriesOfRun };
      const s = createSandbox(redis(), limits);
      const { t } = s;
      const say = (more: object) => t.apply(t.routes({ x: { sub: { endpoint: sealed('x', [5_000]), ...more } } }));
      await say(sub);
      await t.activate('x', 'a');
      const woken: string[] = [];
      const desk = createSandboxDesk({
        redis: t.client,
        nowMs: t.nowMs,
        limits,
        async lower(hints) {
          // A process that takes the run must find the event.
          const known = await s.store.readRun(t.tenant, RUN);
          woken.push(...hints.map(({ member, dueMs }) => `${member} ${dueMs - t.nowMs()} ${known?.queues.join()}`));
        },
      });
      async function publish(id: string, groupKey = 'a') {
        const config = await t.ingress.readQueue(t.tenant, QUEUE);
        if (config === null || config === 'unavailable') throw new Error('no queue');
        return (await desk.publish(t.tenant, QUEUE, RUN, config, { ...event(id, groupKey), simulation: {} })).answer;
      }
      /** Returns the result, and how often the run was woken. */
      async function count<T>(act: () => Promise<T>): Promise<[T, number]> {
        woken.length = 0;
        return [await act(), woken.length];
      }
      return { s, say, woken, publish, count, report: () => desk.report(t.tenant, RUN, {}) };
    }

    test('an event and its duplicate wake the run after they are stored, and a refused event does not', async () => {
      const { s, woken, publish, count } = await start();
      expect(await publish('e0')).toBe('OK');
      expect(woken).toEqual([`${runMember(s.t.tenant, RUN)} 0 ${QUEUE}`]);
      expect(await count(() => publish('e0'))).toEqual(['DUP', 1]);
      expect(await count(() => publish('e1'))).toEqual(['OK', 1]);
      expect(await count(() => publish('e2'))).toEqual(['RUN_FULL', 0]);
    });

    test('the report of an open run wakes it, and that of an ended or unknown run does not', async () => {
      const { s, publish, count, report } = await start();
      expect(await count(report)).toEqual([undefined, 0]);
      await publish('e0');
      expect(await count(report)).toMatchObject([{ totals: { pending: 1 } }, 1]);
      await s.finish(RUN);
      expect(await count(report)).toMatchObject([{ totals: { pending: 0, delivered: 1 } }, 0]);
    });

    test('the report of a run that waits for a gate wakes it, so that it continues when the gate is open', async () => {
      const { s, say, publish, count, report } = await start({ route: 'paused', send: 'held' });
      await publish('e0');
      await s.finish(RUN);
      const waiting = { totals: { pending: 0 }, data: [{ integrations: [{ verdict: 'waiting', reason: 'paused' }] }] };
      expect(await count(report)).toMatchObject([waiting, 1]);
      await say({});
      await s.finish(RUN);
      expect(await count(report)).toMatchObject([{ totals: { delivered: 1 } }, 0]);
    });

    test('the report uses the limits of the desk', async () => {
      const { s, say, publish, report } = await start({ route: 'paused', send: 'held' }, 1);
      for (const id of ['e0', 'e1']) await publish(id);
      await say({ unordered: true });
      await s.store.countDeliveries(s.t.tenant, RUN, 1);
      await s.finish(RUN);
      expect((await report())?.data[0]?.integrations).toMatchObject([{ verdict: 'waiting', reason: 'run_full' }]);
    });
  });
});
