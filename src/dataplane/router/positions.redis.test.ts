import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { createTenant, QUEUE, START_MS, type Tenant } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type Actor, type Choice, everySchedule, interleave, type Step } from '../testing/interleaving.ts';
import { type QueueRouterDeps, routeQueue } from './queue.ts';

/** A router that is later than the first one's lease: it may take the queue over at any time. */
const LATER_MS = 6_000;

/**
 * The order of writes, proved on the real scripts: two routers (one may be deposed at any call), a block and its end,
 * ingress, and faults, call by call. Whatever happens, in the end each event lies in the inbox once, in order, and is
 * counted once.
 */
describe('positions', () => {
  let client: RedisClient | undefined;
  const redis = () => client as RedisClient;
  beforeAll(async () => {
    client = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
  });
  afterAll(() => client?.close());

  function routerOf(t: Tenant, owner: string, atMs: number, step: Step): QueueRouterDeps {
    const { queues, inboxes } = t;
    return {
      owner,
      batchEvents: 2,
      nowMs: () => atMs,
      signal: new AbortController().signal,
      alarm: () => {},
      onBatch: () => {},
      // In one round trip with the fold.
      lower: async () => {},
      ledger: { ...t.ledger, fold: (...args) => step('fold', () => t.ledger.fold(...args)) },
      inboxes: {
        route: (...args) => step('route', () => inboxes.route(...args)),
        expire: inboxes.expire,
      },
      queues: {
        own: (...args) => step('own', () => queues.own(...args)),
        next: (...args) => step('next', () => queues.next(...args)),
        catchUp: (...args) => step('catch up', () => queues.catchUp(...args)),
        lookup: (...args) => step('look up', () => queues.lookup(...args)),
        trim: queues.trim,
        release: queues.release,
      },
    };
  }

  function router(t: Tenant, name: string, atMs: number, faults: Actor['faults']): Actor {
    return {
      name,
      faults,
      run: async step => {
        // As the due loop does: what failed is tried again.
        for (let tries = 0; tries < 2; tries++) {
          try {
            await routeQueue(routerOf(t, name, atMs, step), t.queue, new Map());
            return;
          } catch {}
        }
      },
    };
  }

  function say(t: Tenant, route: 'open' | 'paused'): Promise<void> {
    const { meta, sub } = integrationKeys(t.nameOf('x'));
    return t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub('sub_x'), args: ['route', route] }] }]);
  }

  /** Block and un-block as the controller writes them: I, then (un-blocking) the queue. */
  function controller(t: Tenant, times: number): Actor {
    return {
      name: 'controller',
      faults: [],
      run: async step => {
        for (let i = 0; i < times; i++) {
          await step('blocks', () => say(t, 'paused'));
          await step('un-blocks', () => say(t, 'open'));
          await step('wakes', () => t.control.wake(1, t.tenant, QUEUE, [t.inboxOf('x')]));
        }
      },
    };
  }

  const ingress = (t: Tenant): Actor => ({
    name: 'ingress',
    faults: [],
    run: async step => {
      await step('accepts', () => t.ingest(['k']));
    },
  });

  async function start(): Promise<Tenant> {
    const t = createTenant(redis());
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    await t.ingest(['k', 'k', 'k']);
    return t;
  }

  /** Whoever comes next ends everything: then nothing may be missing, double, out of order or miscounted. */
  async function check(t: Tenant, events: number): Promise<void> {
    const direct: Step = (_label, call) => call();
    await routeQueue(routerOf(t, 'last', START_MS + 5 * LATER_MS, direct), t.queue, new Map());
    const q = queueKeys(t.tenant, QUEUE, 'gen1');
    const x = inboxKeys(t.nameOf('x'), 'sub_x', 'inc1');
    const ids = async (key: string) => ((await redis().call('xrange', key, '-', '+')) as [string][]).map(([id]) => id);
    const accepted = await ids(q.events);
    expect(accepted).toHaveLength(events);
    expect(await ids(x.log)).toEqual(accepted);
    expect(await redis().call('zcard', x.pending)).toBe(events);
    expect(await redis().readHash(q.behind)).toEqual({});
    expect(await redis().call('scard', q.wake)).toBe(0);
    expect(await redis().readHash(q.traffic(Math.floor(START_MS / 3_600_000)))).toEqual({
      in: String(events),
      routed: String(events),
      tokens: String(events),
      bytes: String(4 * events),
    });
  }

  type Scenario = (t: Tenant) => { actors: Actor[]; events: number };
  interface Case {
    readonly bounds: { readonly preemptions: number; readonly faults: number };
    readonly prepare?: (t: Tenant) => Promise<void>;
    readonly of: Scenario;
  }
  const scenarios: Record<string, Case> = {
    'a router against block and un-block': {
      bounds: { preemptions: 2, faults: 0 },
      of: t => ({ actors: [router(t, 'A', START_MS, []), controller(t, 2)], events: 3 }),
    },
    'block and un-block, and one fault': {
      bounds: { preemptions: 1, faults: 1 },
      of: t => ({
        actors: [router(t, 'A', START_MS, ['answer lost', 'not done', 'crash']), controller(t, 1)],
        events: 3,
      }),
    },
    'blocked again while the first block is caught up': {
      bounds: { preemptions: 3, faults: 0 },
      prepare: async t => {
        const direct: Step = (_label, call) => call();
        await say(t, 'paused');
        await routeQueue(routerOf(t, 'before', START_MS, direct), t.queue, new Map());
        await say(t, 'open');
        await t.control.wake(1, t.tenant, QUEUE, [t.inboxOf('x')]);
      },
      of: t => ({ actors: [router(t, 'A', START_MS, []), controller(t, 1)], events: 3 }),
    },
    'two routers': {
      bounds: { preemptions: 2, faults: 0 },
      of: t => ({ actors: [router(t, 'A', START_MS, []), router(t, 'B', START_MS + LATER_MS, [])], events: 3 }),
    },
    'two routers, block and un-block': {
      bounds: { preemptions: 2, faults: 0 },
      of: t => ({
        actors: [controller(t, 1), router(t, 'A', START_MS, []), router(t, 'B', START_MS + LATER_MS, [])],
        events: 3,
      }),
    },
  };

  async function run(
    { of, prepare }: Pick<Case, 'of' | 'prepare'>,
    choose: (options: readonly Choice[], last: string) => Choice,
  ) {
    const t = await start();
    await prepare?.(t);
    const { actors, events } = of(t);
    const trace = await interleave(actors, choose);
    try {
      await check(t, events);
    } catch (error) {
      throw new Error(`after:\n  ${trace.join('\n  ')}`, { cause: error });
    }
  }

  describe('every schedule with few pre-emptions', () => {
    test.each(Object.keys(scenarios))('%s', async name => {
      const scenario = scenarios[name] as Case;
      const runs = await everySchedule(scenario.bounds, choose => run(scenario, choose));
      expect(runs).toBeGreaterThan(50);
    });
  });

  test('any schedule: four actors, two faults', async () => {
    const faulty: Actor['faults'] = ['answer lost', 'not done', 'crash'];
    const of: Scenario = t => ({
      actors: [
        router(t, 'A', START_MS, faulty),
        router(t, 'B', START_MS + LATER_MS, faulty),
        controller(t, 2),
        ingress(t),
      ],
      events: 4,
    });
    const pick = fc.record({ actor: fc.nat(3), fault: fc.nat(40) });
    await fc.assert(
      fc.asyncProperty(fc.array(pick, { maxLength: 60 }), async picks => {
        let at = 0;
        let faults = 2;
        await run({ of }, options => {
          const { actor, fault } = picks[at++] ?? { actor: 0, fault: 0 };
          const names = [...new Set(options.map(option => option.actor))];
          const mine = options.filter(option => option.actor === names[actor % names.length]);
          const chosen = (faults > 0 && fault >= 1 && fault <= 3 ? mine[fault] : undefined) ?? (mine[0] as Choice);
          if (chosen.fate !== 'done') faults--;
          return chosen;
        });
      }),
      { numRuns: 150, seed: 20_260_101, endOnFailure: false },
    );
  });
});
