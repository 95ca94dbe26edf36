import { expect, test } from 'vitest';
import { withClock } from '../../../test/support/part/clock.ts';
import { putRoutes } from '../../../test/support/part/routes.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createExchange } from '../claims/exchange.ts';
import { type Part, partKeys } from '../keys.ts';
import { createIngest } from '../log/ingest.ts';
import { createPartsControl } from './parts-control.ts';

const FENCE = 1;
const EVENTS = 1_200;

onEachRedis(redis => {
  test('the next leader continues all lanes of a group key if the controller crashed while opening it', async () => {
    const t = createTenant(redis());
    const client = { ...redis(), ...withClock(redis(), t.nowMs) };
    let callsToCrash = Number.POSITIVE_INFINITY;
    const crashing: typeof client = {
      ...client,
      async runNamed(script, call) {
        if (script.name === 'gate' && --callsToCrash < 0) throw new Error('crashed');
        return client.runNamed(script, call);
      },
    };
    const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const keys = partKeys(part);
    const integration = t.nameOf('x');
    const openKeys = () => new Map([[integration, [{ groupKey: 'k', sinceMs: t.clock.ms }]]]);
    const want = t.routes({ x: { sub: { unordered: true } } }, { maxBytes: 10_000_000 });
    const control = createPartsControl(crashing, t.control, t.nowMs);
    await putRoutes(control, { fence: FENCE, want, isKnown: false, openKeys });
    await control.setActivation(FENCE, integration, 'k', t.clock.ms);
    const { cfgv = '' } = await redis().readHash(keys.meta);
    const event = { groupKey: 'k', meta: '{"s":"/x"}', body: Buffer.from('body') };
    for (let n = 0; n < EVENTS; n += 60) await createIngest(client, t.nowMs)(part, cfgv, Array(60).fill(event));
    await control.setActivation(FENCE, integration, 'k', null);
    const holding = { dispatcher: 'd', readyMs: 3_000, limit: 1_000, held: 0, holdsAlone: false, pushed: 0, bytes: 0 };
    const exchange = createExchange(client);
    for (let number = 1; number <= 25; number++) {
      expect(await exchange(part, { ...holding, number, roomBytes: 0 }, [], 64)).toMatchObject({ events: [] });
    }
    const parked = async () => Object.values(await redis().readHash(keys.lanes)).filter(state => state === 'p').length;
    expect(await parked()).toBe(EVENTS);

    callsToCrash = 1;
    await expect(control.setActivation(FENCE, integration, 'k', t.clock.ms)).rejects.toThrow('crashed');
    expect(await parked()).toBe(200);
    const next = createPartsControl(client, t.control, t.nowMs);
    await putRoutes(next, { fence: FENCE + 1, want, isKnown: false, openKeys });
    expect(await parked()).toBe(0);
  });
});
