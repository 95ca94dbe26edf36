import { expect, test } from 'vitest';
import { createAuditedPart } from '../../../test/support/controller/audited-part.ts';
import { parseDeliveryState } from '../../core/delivery/delivery-state.ts';
import { parseEndpointHealth } from '../../core/delivery/endpoint-health.ts';
import { type Completion, createExchange } from '../../part/claims/exchange.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { type ComparisonDeps, compareTenant } from './comparison.ts';

const HOLDING = {
  dispatcher: 'd1',
  readyMs: 3_000,
  limit: 10,
  held: 0,
  holdsAlone: false,
  pushed: 0,
  bytes: 0,
  roomBytes: 0,
};

onEachRedis(redis => {
  async function start() {
    const world = await createAuditedPart(redis());
    const { t, part, k, slot } = world;
    const exchange = createExchange(redis());
    let calls = 0;
    return {
      t,
      k,
      slot,
      send: (...groupKeys: string[]) => world.send(...groupKeys),
      advanceAll: () => world.advanceAll(),
      exchange: async (completions: readonly Completion[] = []) => {
        const answer = await exchange(part, { ...HOLDING, number: ++calls }, [...completions], 10);
        if (answer.answer === 'GONE') throw new Error('GONE');
        return answer.events.flatMap(({ claims }) => claims);
      },
      /** Returns the result of comparing the subscriptions. */
      compare: async () => {
        const healths = new Map<string, string | undefined>();
        let deliveries: Parameters<ComparisonDeps['noteDeliveries']>[0] = new Map();
        const deps: ComparisonDeps = {
          caches: t.caches,
          store: t.store,
          tenants: t.tenants,
          isPaused: () => false,
          enqueueTenant: () => {},
          isPairPending: () => false,
          isAccountPending: () => false,
          noteHealths: (subs, texts) => {
            for (const sub of subs) healths.set(sub, texts.get(sub));
          },
          noteDeliveries: found => void (deliveries = found),
        };
        expect(await compareTenant(deps, t.name, await t.listed())).toEqual([]);
        return { healths, deliveries };
      },
    };
  }

  test('a comparison reports the health and the deliveries of each subscription, as stored in its part', async () => {
    const { t, k, slot, send, advanceAll, exchange, compare } = await start();
    const before = await compare();
    expect([...before.healths]).toEqual([[t.sub, undefined]]);
    await send('red', 'green');
    await advanceAll();
    const [{ lane, ref } = { lane: '', ref: '' }] = await exchange();
    await exchange([{ lane, ref, outcome: 'dead', reason: '410', latencyMs: 5 }]);
    await redis().call('hset', k.health, slot, `${t.clock.ms} 1 0 0 ${t.clock.ms}g `);
    const { healths, deliveries } = await compare();
    expect(parseEndpointHealth(healths.get(t.sub))?.disabled).toMatchObject({ ms: t.clock.ms });
    const fields = deliveries.get(t.sub);
    expect(fields?.inc).toBeDefined();
    expect(parseDeliveryState(fields ?? {})).toMatchObject({ dead: 1 });
  });

  test('does not include a subscription whose part was removed', async () => {
    const { t, k } = await start();
    const stored = t.tenants.stored(t.name);
    await redis().call('del', k.meta);
    expect(stored && (await t.store.parts.readStates(stored.routes)).size).toBe(0);
  });
});
