import { expect, test } from 'vitest';
import { withClock } from '../../../test/support/part/clock.ts';
import { putRoutes } from '../../../test/support/part/routes.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createAdvance } from '../catchup/advance.ts';
import { type Part, partKeys } from '../keys.ts';
import { createIngest } from '../log/ingest.ts';
import { createPartsControl } from './parts-control.ts';

const FENCE = 1;

onEachRedis(redis => {
  /** Starts a part without subscriptions. `put` writes the subscription x, for which the group key `k` is open. */
  async function start() {
    const t = createTenant(redis());
    const client = { ...redis(), ...withClock(redis(), t.nowMs) };
    const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const keys = partKeys(part);
    async function publish(body: string): Promise<void> {
      const { cfgv = '' } = await redis().readHash(keys.meta);
      t.clock.ms += 1_000;
      const event = { groupKey: 'k', meta: '{"s":"/x"}', body: Buffer.from(body) };
      const { answer } = await createIngest(client, t.nowMs)(part, cfgv, [event]);
      expect(answer).toBe('OK');
    }
    const sinceMs = t.clock.ms;
    let gateCalls = 0;
    let between: string | undefined;
    const interrupted: typeof client = {
      ...client,
      runNamed: async (script, call) => {
        // The first call writes the rows, the second one the activations, and the last one opens the rows.
        if (script.name === 'gate' && ++gateCalls === 2 && between !== undefined) await publish(between);
        return client.runNamed(script, call);
      },
    };
    const control = createPartsControl(interrupted, t.control, t.nowMs);
    const openKeys = () => new Map([[t.nameOf('x'), [{ groupKey: 'k', sinceMs }]]]);
    const write = (subs: Parameters<typeof t.routes>[0], isKnown: boolean) =>
      putRoutes(control, { fence: FENCE, want: t.routes(subs), isKnown, openKeys });
    await write({}, false);
    /** Publishes an event with this body after the first call, if it is set. */
    async function put(isKnown: boolean, body?: string): Promise<void> {
      gateCalls = 0;
      between = body;
      await write({ x: {} }, isKnown);
      expect(gateCalls).toBeGreaterThan(2);
    }
    /** Routes all events, and returns their bodies. */
    async function routed(): Promise<unknown[]> {
      expect(await createAdvance(client)(part)).toMatchObject({ answer: 'OK' });
      const waiting = (await redis().call('zrange', keys.pending, 0, -1)) as string[];
      const bodies = await redis().readHash(keys.body);
      return waiting.map(each => bodies[each.split('\0')[1] as string]);
    }
    return { keys, put, routed };
  }

  test('an event that is stored while a new subscription is being written is routed to it', async () => {
    const { put, routed } = await start();
    await put(true, 'between');
    expect(await routed()).toEqual(['between']);
  });

  test('an event that is stored while damaged activations are being repaired is routed', async () => {
    const { keys, put, routed } = await start();
    await put(true);
    await redis().call('hset', keys.keys, 'k', 'damaged');
    await put(false, 'between');
    expect(await routed()).toEqual(['between']);
  });
});
