import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import type { StoredEvent } from '../../redis/inbox-store.ts';
import { accountKeys, inboxKeys, integrationKeys } from '../../redis/keys.ts';
import { readBalance } from '../../redis/ledger-store.ts';
import { createTenant, QUEUE, START_MS, type Tenant } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type Actor, everySchedule, interleave, type Step } from '../testing/interleaving.ts';
import { type QueueRouterDeps, routeQueue } from './queue.ts';

/** A router that is later than the first one's lease: it may take the queue over at any time. */
const LATER_MS = 6_000;
const NAMES = ['x', 'y'];

/**
 * Reserving, charging and folding, proved on the real scripts: queues that share an account, a router that is deposed
 * or dies at any call, a top-up. Whatever happens, each reference is charged once, an account that enforces its tokens
 * is never overdrawn, what can be paid is routed, and in the end the account's balance is the sum of the ledgers.
 */
describe('ledger', () => {
  let client: RedisClient | undefined;
  const redis = () => client as RedisClient;
  beforeAll(async () => {
    client = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  });
  afterAll(() => client?.close());

  function routerOf(t: Tenant, owner: string, atMs: number, step: Step): QueueRouterDeps {
    const { queues, inboxes, ledger } = t;
    return {
      owner,
      batchEvents: 2,
      nowMs: () => atMs,
      signal: new AbortController().signal,
      alarm: () => {},
      onBatch: () => {},
      lower: async () => {},
      inboxes: { route: (...args) => step('route', () => inboxes.route(...args)), expire: inboxes.expire },
      ledger: {
        reserve: (...args) => step('reserve', () => ledger.reserve(...args)),
        fold: (...args) => step('fold', () => ledger.fold(...args)),
        survey: (...args) => ledger.survey(...args),
      },
      queues: {
        ...queues,
        own: (...args) => step('own', () => queues.own(...args)),
        next: (...args) => step('next', () => queues.next(...args)),
        catchUp: (...args) => step('catch up', () => queues.catchUp(...args)),
      },
    };
  }

  function router(t: Tenant, name: string, atMs: number, faults: Actor['faults']): Actor {
    return {
      name,
      faults,
      run: async step => {
        for (let tries = 0; tries < 2; tries++) {
          try {
            await routeQueue(routerOf(t, name, atMs, step), t.queue, new Map());
            return;
          } catch {}
        }
      },
    };
  }

  /** Block and un-block as the controller writes them: I, then (un-blocking) the queue. */
  function blocker(t: Tenant): Actor {
    const { meta, sub } = integrationKeys(t.nameOf('x'));
    const say = (route: 'open' | 'paused') =>
      t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub('sub_x'), args: ['route', route] }] }]);
    return {
      name: 'controller',
      faults: [],
      run: async step => {
        await step('blocks', () => say('paused'));
        await step('un-blocks', () => say('open'));
        await step('wakes', () => t.control.wake(1, t.tenant, QUEUE, [t.inboxOf('x')]));
      },
    };
  }

  interface World {
    /** All of them at the first one's account. */
    readonly tenants: readonly Tenant[];
    readonly account: string;
    /** The most that the account ever had. */
    included: number;
  }

  /** One actor has one call under way at a time: one integration a queue where calls are interleaved. */
  async function start(
    queues: number,
    included: number,
    names: readonly string[],
    sizes: readonly number[],
  ): Promise<World> {
    const tenants = Array.from({ length: queues }, () => createTenant(redis()));
    const { account, control } = tenants[0] as Tenant;
    await control.setAccount(1, account, 'Free', included);
    for (const t of tenants) {
      const routes = t.routes(Object.fromEntries(names.map(name => [name, {}])), { maxBytes: 1_000_000_000 });
      await t.apply({ ...routes, payer: account, plan: 'Free' });
      for (const name of names) await t.activate(name, 'k');
      for (const size of sizes) await t.ingest(['k'], 'b'.repeat(size));
    }
    return { tenants, account, included };
  }

  const topUp = async (world: World, included: number): Promise<void> => {
    world.included = included;
    await (world.tenants[0] as Tenant).control.setAccount(1, world.account, 'Free', included);
  };

  /** Sizes of what lies in an inbox, by an independent look: at the bodies of its references. */
  async function sizesOf(t: Tenant, name: string): Promise<number[]> {
    const log = (await redis().call('xrange', inboxKeys(t.nameOf(name), `sub_${name}`, 'inc1').log, '-', '+')) as [
      string,
    ][];
    const events = await t.inboxes.readEvents(
      t.tenant,
      QUEUE,
      'gen1',
      log.map(([id]) => id),
    );
    return events.map(event => (event as StoredEvent).body.length);
  }

  /** Whoever comes next ends everything that can be paid. */
  async function check(world: World, names: readonly string[], everything: number): Promise<void> {
    const direct: Step = (_label, call) => call();
    for (let round = 1; round <= 3; round++) {
      for (const t of world.tenants) {
        const atMs = START_MS + (5 + round) * LATER_MS;
        await routeQueue(routerOf(t, `last ${round}`, atMs, direct), t.queue, new Map());
      }
    }
    let counted = 0;
    for (const t of world.tenants) {
      for (const name of names) {
        const tokens = (await sizesOf(t, name)).map(tokensOf).reduce((a, b) => a + b, 0);
        const charged = await redis().call('hget', integrationKeys(t.nameOf(name)).ledger, world.account);
        expect(Number(charged)).toBe(tokens);
        counted += tokens;
      }
    }
    const balance = await readBalance(redis(), world.account);
    expect(balance?.usedTokens).toBe(counted);
    expect(counted).toBeLessThanOrEqual(world.included);
    expect(counted).toBe(Math.min(everything, world.included));
    expect(await redis().readHash(accountKeys(world.account).hold)).toEqual({});
    expect(await redis().readHash(accountKeys(world.account).holder)).toEqual({});
  }

  const sizes = [0, 1, 2];
  interface Case {
    readonly queues: number;
    readonly included: number;
    readonly bounds: { readonly preemptions: number; readonly faults: number };
    readonly of: (world: World) => readonly Actor[];
  }
  const faults: Actor['faults'] = ['answer lost', 'not done', 'crash'];
  const of = ({ tenants }: World, i: number) => tenants[i] as Tenant;
  const scenarios: Record<string, Case> = {
    'two routers of one queue, and less than it costs': {
      queues: 1,
      included: 2,
      bounds: { preemptions: 2, faults: 0 },
      of: world => [router(of(world, 0), 'A', START_MS, []), router(of(world, 0), 'B', START_MS + LATER_MS, [])],
    },
    'two routers of one queue, and one fault': {
      queues: 1,
      included: 2,
      bounds: { preemptions: 1, faults: 1 },
      of: world => [
        router(of(world, 0), 'A', START_MS, faults),
        router(of(world, 0), 'B', START_MS + LATER_MS, ['crash']),
      ],
    },
    'two queues of one account, and not enough for both': {
      queues: 2,
      included: 4,
      bounds: { preemptions: 2, faults: 0 },
      of: world => [router(of(world, 0), 'A', START_MS, []), router(of(world, 1), 'B', START_MS, [])],
    },
    'two queues of one account, and one fault': {
      queues: 2,
      included: 4,
      bounds: { preemptions: 1, faults: 1 },
      of: world => [
        router(of(world, 0), 'A', START_MS, ['answer lost', 'crash']),
        router(of(world, 1), 'B', START_MS, []),
      ],
    },
    'block and un-block, the catch-up is paid for as well': {
      queues: 1,
      included: 2,
      bounds: { preemptions: 2, faults: 0 },
      of: world => [router(of(world, 0), 'A', START_MS, []), blocker(of(world, 0))],
    },
    'a top-up in the middle, and one fault': {
      queues: 1,
      included: 1,
      bounds: { preemptions: 2, faults: 1 },
      of: world => [
        router(of(world, 0), 'A', START_MS, faults),
        { name: 'controller', faults: [], run: step => step('tops up', () => topUp(world, 3)) },
      ],
    },
  };

  describe('every schedule with few pre-emptions', () => {
    test.each(Object.keys(scenarios))('%s', async name => {
      const { queues, included, bounds, of: actors } = scenarios[name] as Case;
      const runs = await everySchedule(bounds, async choose => {
        const world = await start(queues, included, ['x'], sizes);
        const trace = await interleave(actors(world), choose);
        try {
          await check(world, ['x'], queues * sizes.length);
        } catch (error) {
          throw new Error(`after:\n  ${trace.join('\n  ')}`, { cause: error });
        }
      });
      expect(runs).toBeGreaterThan(20);
    });
  });

  test('any bodies, two queues, two integrations each, any deaths: the ledger is the independent count', async () => {
    const size = fc.constantFrom(0, 1, 16_383, 16_384, 16_385, 32_768, 262_144);
    const life = fc.record({ queue: fc.nat(1), calls: fc.nat({ max: 30 }), later: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(size, { minLength: 1, maxLength: 6 }),
        fc.nat(60),
        fc.array(life, { maxLength: 6 }),
        async (bodies, included, lives) => {
          const world = await start(2, included, NAMES, bodies);
          for (const [i, { queue, calls, later }] of lives.entries()) {
            let left = calls;
            const mortal: Step = (_label, call) => (left-- > 0 ? call() : Promise.reject(new Error('dead')));
            const atMs = START_MS + (later ? LATER_MS : 0);
            await routeQueue(routerOf(of(world, queue), `${i}`, atMs, mortal), of(world, queue).queue, new Map()).catch(
              () => {},
            );
          }
          const everything = 2 * NAMES.length * bodies.map(tokensOf).reduce((a, b) => a + b, 0);
          await topUp(world, Math.max(included, everything));
          world.included = everything;
          await check(world, NAMES, everything);
        },
      ),
      { numRuns: 40, seed: 20_260_102, endOnFailure: true },
    );
  });

  test('fifty equal publishes at once are one charge', async () => {
    const world = await start(1, 100, ['x'], []);
    const t = of(world, 0);
    const config = await t.ingress.readQueue(t.tenant, QUEUE);
    if (config === null || config === 'unavailable') throw new Error('no queue');
    const same = {
      id: 'order-1',
      type: undefined,
      groupKey: 'k',
      contentType: undefined,
      traceparent: undefined,
      forward: {},
      body: Buffer.alloc(16_385),
    };
    await Promise.all(Array.from({ length: 50 }, () => t.ingress.ingest(t.tenant, QUEUE, config, [same])));
    await check(world, ['x'], 2);
  });
});
