import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createLedgerWorld, DAY_MS, type LedgerWorld } from '../../../test/support/part/ledger-world.ts';
import type { Fate } from '../../../test/support/part/slow-client.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

const FATES: readonly Fate[] = [...Array.from({ length: 14 }, () => 'done' as const), 'lost', 'unanswered'];
const INCLUDED = 60;
/** The number of histories of each test with one Redis. `make test-model` and `make test-mutants` use 40. */
const RUNS = Number(process.env.RUNS || 5);

type Act = (world: LedgerWorld, n: number) => Promise<void> | void;

const ACTS: Readonly<Record<string, readonly [weight: number, act: Act]>> = {
  call: [30, (world, n) => world.slow.send(n, FATES[n % FATES.length] as Fate)],
  route: [8, (world, n) => world.route(n)],
  settle: [5, (world, n) => world.settleLate(n)],
  pay: [2, (world, n) => world.pay(n, world.accounts[(n >> 2) % 2] as string)],
  recall: [1, (world, n) => world.recallLate(world.accounts[n % 2] as string)],
  remove: [2, (world, n) => world.removeLate(n)],
  begin: [2, (world, n) => world.begin(n, world.accounts[(n >> 2) % 2] as string)],
  wait: [2, (world, n) => world.pass(n * 10)],
};
const FAILOVERS: typeof ACTS = {
  'fail part': [1, (world, n) => world.failPart(n, n >> 2)],
  'fail account': [1, (world, n) => world.failAccount(world.accounts[n % 2] as string, n >> 1)],
};
/** Only uses failovers, so that parts are often idle between a lost change and the next one. */
const PROMPT: typeof ACTS = {
  route: [6, (world, n) => world.route(n)],
  settle: [8, async (world, n) => void (await world.settle(n))],
  pay: [4, (world, n) => world.pay(n, world.accounts[(n >> 2) % 2] as string)],
  remove: [1, (world, n) => world.remove(n)],
  begin: [1, (world, n) => world.begin(n, world.accounts[(n >> 2) % 2] as string)],
  'fail part': [3, (world, n) => world.failPart(n, n >> 2)],
  idle: [2, world => idleForDays(world)],
};

/** Runs everything without faults, so that each part is read in its current state. */
async function settleAll(world: LedgerWorld): Promise<void> {
  for (let round = 0; round < 2; round++) for (const n of world.parts.keys()) await world.settle(n);
}

/** Delays reports in progress by days. */
async function passDays(world: LedgerWorld): Promise<void> {
  await settleAll(world);
  world.forgetStates();
  world.pass(2 * DAY_MS);
  await settleAll(world);
}

/** Does not read the parts before the days have passed. A failover cannot restore anything from before. */
function idleForDays(world: LedgerWorld): void {
  world.forgetStates();
  world.pass(2 * DAY_MS);
}

const step = (acts: typeof ACTS) =>
  fc.record({
    kind: fc.oneof(...Object.entries(acts).map(([kind, [weight]]) => ({ weight, arbitrary: fc.constant(kind) })), {
      weight: 2,
      arbitrary: fc.constantFrom('days', 'idle'),
    }),
    n: fc.nat({ max: 1_000 }),
  });

onEachRedis(redis => {
  async function play(acts: typeof ACTS, check: (world: LedgerWorld, at: 'step' | 'end') => Promise<void>) {
    const histories = fc.array(step(acts), { minLength: 50, maxLength: 250, size: 'max' });
    const run = async (history: readonly { readonly kind: string; readonly n: number }[]) => {
      const world = await createLedgerWorld(redis(), INCLUDED);
      for (const { kind, n } of history) {
        if (kind === 'idle') idleForDays(world);
        else await (kind === 'days' ? passDays(world) : acts[kind]?.[1](world, n));
        if (acts !== ACTS) await world.note();
        await check(world, 'step');
      }
      // The last calls arrive after all other steps.
      await settleAll(world);
      for (const n of world.parts.keys()) await world.remove(n);
      while (world.slow.waiting() > 0) await world.slow.send(0, 'done');
      for (const n of world.parts.keys()) await world.remove(n);
      await check(world, 'end');
    };
    await fc.assert(fc.asyncProperty(histories, run), {
      // The accounts and parts have the same scripts in a Cluster, which only spreads their slots.
      numRuns: redis().cluster ? Math.ceil(RUNS / 6) : RUNS,
      seed: Number(process.env.SEED || 1),
      // Nobody reads the shortest history that detects a mutant.
      endOnFailure: process.env.SHRINK === 'no',
      // Reports a failure before the test times out.
      interruptAfterTimeLimit: 200_000,
    });
  }

  describe('reports that arrive late, and lost calls', () => {
    test('charge each event once, and no data of removed parts remains', async () => {
      await play(ACTS, async (world, at) => {
        for (const account of world.accounts) {
          const [used, routed] = [await world.used(account), world.routed(account)];
          expect(used).toBeLessThanOrEqual(routed);
          if (at === 'step') continue;
          expect(used).toBe(routed);
          const { seen, grants, hold, ended } = await world.kept(account);
          expect(seen.filter(field => !ended.includes(field))).toEqual([]);
          expect([grants, hold]).toEqual([[], []]);
        }
      });
    });
  });

  describe('a failover that loses the newest changes', () => {
    test('of a part does not charge any event twice, and known events are not lost', async () => {
      const acts = { ...ACTS, 'fail part': FAILOVERS['fail part'] as readonly [number, Act] };
      await play(acts, async (world, at) => {
        for (const account of world.accounts) {
          const [used, routed] = [await world.used(account), world.routed(account)];
          expect(used).toBeLessThanOrEqual(routed + world.lost(account));
          if (at === 'end') expect(used).toBeGreaterThanOrEqual(routed);
        }
      });
    });

    test('of an idle part days later does not charge any event twice', async () => {
      await play(PROMPT, async world => {
        for (const account of world.accounts) {
          expect(await world.used(account)).toBeLessThanOrEqual(world.routed(account) + world.lost(account));
        }
      });
    });

    test('of an account does not charge any event twice', async () => {
      await play({ ...ACTS, ...FAILOVERS }, async world => {
        for (const account of world.accounts) {
          expect(await world.used(account)).toBeLessThanOrEqual(world.routed(account) + world.lost(account));
        }
      });
    });
  });
});
