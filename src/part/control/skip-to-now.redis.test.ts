import { expect, test } from 'vitest';
import { withClock } from '../../../test/support/part/clock.ts';
import { putRoutes } from '../../../test/support/part/routes.ts';
import type { SubscriptionRoute } from '../../core/routing/routes.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createAdvance } from '../catchup/advance.ts';
import { type Part, partKeys, slotOf } from '../keys.ts';
import { createIngest } from '../log/ingest.ts';
import { createPartsControl } from './parts-control.ts';

const FENCE = 1;
const BLOCKED = { route: 'paused', send: 'held' } as const;

onEachRedis(redis => {
  async function start() {
    const t = createTenant(redis());
    const client = { ...redis(), ...withClock(redis(), t.nowMs) };
    const control = createPartsControl(client, t.control, t.nowMs);
    const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const keys = partKeys(part);
    const advance = createAdvance(client);
    let sent = 0;
    let isKnown = false;
    async function put(sub: Partial<SubscriptionRoute>): Promise<void> {
      const want = t.routes({ x: { sub } });
      await putRoutes(control, { fence: FENCE, want, isKnown, openKeys: () => new Map() });
      isKnown = true;
    }
    /** Stores events one after the other. */
    async function send(count: number): Promise<void> {
      const { cfgv = '' } = await redis().readHash(keys.meta);
      for (let i = 0; i < count; i++) {
        t.clock.ms += 1_000;
        const body = Buffer.from(`${++sent}`);
        await createIngest(client, t.nowMs)(part, cfgv, [{ groupKey: 'k', meta: '{"s":"/x"}', body }]);
      }
    }
    /** Routes all events. Returns the numbers of the routed events. */
    async function routed(): Promise<number[]> {
      for (let more = true; more; ) {
        const answer = await advance(part);
        if (answer.answer !== 'OK') throw new Error(answer.answer);
        more = answer.more;
      }
      const slot = slotOf(t.inboxOf('x').sub, t.inboxOf('x').inc);
      const pending = (await redis().call('zrange', keys.pending, 0, -1)) as string[];
      const bodies = await redis().readHash(keys.body);
      return pending.filter(each => each.startsWith(slot)).map(each => Number(bodies[each.split('\0')[1] as string]));
    }
    await put({});
    await control.setActivation(FENCE, t.nameOf('x'), 'k', t.clock.ms);
    return { put, send, routed };
  }

  test('skips events that were stored during the Blocks if all of them use SkipToNow', async () => {
    const { put, send, routed } = await start();
    await send(1);
    await put({ ...BLOCKED, onUnblock: 'skip' });
    await send(2);
    await put({});
    await send(2);
    expect(await routed()).toEqual([1, 4, 5]);
  });

  test('delivers everything if one of the Blocks uses Continue', async () => {
    const { put, send, routed } = await start();
    await put({ ...BLOCKED, onUnblock: 'skip' });
    await send(1);
    await put({ ...BLOCKED, onUnblock: 'continue' });
    await send(1);
    await put({});
    await send(1);
    expect(await routed()).toEqual([1, 2, 3]);
  });

  test('while it is suspended, only events from before the end of the Blocks are skipped', async () => {
    const { put, send, routed } = await start();
    await put({ ...BLOCKED, onUnblock: 'skip' });
    await send(2);
    await put(BLOCKED);
    await send(2);
    await put({});
    await send(1);
    expect(await routed()).toEqual([3, 4, 5]);
  });
});
