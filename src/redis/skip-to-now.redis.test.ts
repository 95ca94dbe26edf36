import { expect, test } from 'vitest';
import { planRoutes } from './control-plan.ts';
import { integrationKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, items, START_MS, type SubscriptionShort } from './testing/tenant.ts';

const BLOCKED = { route: 'paused', send: 'held' } as const;

onEachRedis(redis => {
  async function start() {
    const t = createTenant(redis());
    const put = (sub: SubscriptionShort) => t.apply(t.routes({ x: { sub } }));
    await put({});
    await t.activate('x', 'k');
    const route = async (...seconds: number[]) => {
      const entries = seconds.map(second => ({ id: `${START_MS + second * 1_000}-0`, groupKey: 'k' }));
      const answer = await t.inboxes.route(t.inboxOf('x'), t.nowMs(), START_MS, 'gen1', 'acc_payer', items(entries));
      return answer.answer === 'OK' ? answer.flags : answer.answer;
    };
    const stored = () => redis().readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
    return { t, put, route, stored };
  }

  test('after Blocks that all said so, nothing goes that was accepted before, however young; everything after it does', async () => {
    const { t, put, route, stored } = await start();
    await put({ ...BLOCKED, onUnblock: 'skip' });
    expect(await stored()).toMatchObject({ route: 'paused', onUnblock: 'skip' });
    expect(await route(1, 2)).toBe('PAUSED');
    t.clock.ms = START_MS + 3_000;
    await put({});
    expect((await stored()).onUnblock).toBeUndefined();
    expect(await route(1, 2, 3, 4)).toBe('ssrr');
    // The same batch again, as after a crash of the router.
    expect(await route(1, 2, 3, 4)).toBe('ssdd');
  });

  test('after Blocks of which one said Continue, everything goes', async () => {
    const { t, put, route } = await start();
    await put({ ...BLOCKED, onUnblock: 'skip' });
    await put({ ...BLOCKED, onUnblock: 'continue' });
    t.clock.ms = START_MS + 3_000;
    await put({});
    expect(await route(1, 2, 3)).toBe('rrr');
  });

  test('while it stays suspended: only what came before the un-block is left out', async () => {
    const { t, put, route } = await start();
    await put({ ...BLOCKED, onUnblock: 'skip' });
    t.clock.ms = START_MS + 3_000;
    await put(BLOCKED);
    expect(await route(1)).toBe('PAUSED');
    t.clock.ms = START_MS + 100_000;
    await put({});
    expect(await route(1, 2, 50, 99)).toBe('ssrr');
  });

  test('a controller that dies in the middle of the patch has forgotten nothing', async () => {
    const { t, put, route, stored } = await start();
    await put({ ...BLOCKED, onUnblock: 'skip' });
    t.clock.ms = START_MS + 3_000;
    const plan = planRoutes(await t.control.readTenant(t.tenant, t.fence.epoch), t.routes({ x: {} }), t.nowMs());
    const [patch] = plan.patches;
    const ops = patch?.ops ?? [];
    expect(ops.length).toBeGreaterThan(2);
    for (let done = 0; done < ops.length - 1; done++) {
      await put({ ...BLOCKED, onUnblock: 'skip' });
      await t.control.patch(t.fence.epoch, [{ meta: patch?.meta as string, ops: ops.slice(0, done) }]);
      if ((await stored()).onUnblock === undefined) expect((await stored()).skipTo).toBe(String(t.nowMs()));
      await put({});
      expect((await stored()).skipTo).toBe(String(t.nowMs()));
    }
    expect(await route(2, 3)).toBe('sr');
  });
});
