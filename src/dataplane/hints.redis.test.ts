import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { connectRedis, type RedisClient, type Reply } from '../redis/client.ts';
import { createLogger } from '../telemetry/log.ts';
import { type Actor, type Choose, everySchedule, type Fate, interleave } from './testing/interleaving.ts';
import { createEar, createProcesses } from './testing/processes.ts';

/** Beyond every lease. */
const LATER_MS = 40_000;
/** The first retry is due then, with its jitter. */
const RETRY_MS = 5_000;

let client: RedisClient | undefined;
beforeAll(async () => {
  client = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => client?.close());
// No sweep comes in between, whatever the time a schedule takes.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

interface Seen {
  /** Hints that were lowered or leased anew between the work on them and its end. */
  kept: number;
  /** Claims of both dispatchers in one schedule. */
  shared: number;
}

interface How {
  readonly faults: readonly Fate[];
  /** Which scripts are steps of each dispatcher. */
  readonly a: readonly string[];
  readonly b: readonly string[];
}

/**
 * Two dispatchers that find their work by hints, while a router lowers them: messages come late or never, and either of
 * them may die. What is due is never forgotten, and nobody sends what another one has.
 */
async function run(choose: Choose, seen: Seen, { faults, a, b }: How): Promise<void> {
  const p = await createProcesses(client as RedisClient);
  p.failing.add('o1');
  await p.accept('o1');
  await p.settle(p.router());
  p.witnesses.push((name, _keys, _args, reply) => {
    if (name === 'settle' && (reply as Reply[])[0] === 'KEPT') seen.kept++;
  });
  const ingress: Actor = {
    name: 'ingress',
    faults: [],
    run: async step => {
      await step('accepts k1', () => p.accept('k1'));
    },
  };
  const ear = createEar("A's ear", faults.length > 0 ? ['not done'] : []);
  let happened = 0;
  const trace = await interleave(
    [
      ear,
      p.dispatcher('A', { steps: a, faults, ear }),
      p.dispatcher('B', { steps: b }),
      p.router({ steps: ['lower'] }),
      ingress,
    ],
    (options, last) => {
      const choice = choose(options, last);
      if (choice.fate !== 'done') happened++;
      return choice;
    },
  );
  if (['A', 'B'].every(name => trace.includes(`${name} exchange i`))) seen.shared++;
  try {
    if (happened === 0) expect(await p.open()).toEqual(['o']);
    p.clock.ms += happened === 0 ? RETRY_MS + 1_000 : LATER_MS;
    await p.settle(p.router(), p.dispatcher());
    expect(await p.routed()).toEqual(p.accepted);
    expect(await p.open()).toEqual([]);
    const bodies = p.sent.map(({ body }) => body);
    expect(new Set(bodies)).toEqual(new Set(p.accepted));
    if (happened === 0) expect(bodies).toHaveLength(p.accepted.length + 1);
  } catch (error) {
    throw new Error(`after:\n  ${trace.join('\n  ')}\n${String(error)}`, { cause: error });
  }
}

describe('nothing that is due is forgotten by two dispatchers', () => {
  test.each([
    { bounds: { preemptions: 2, faults: 0 }, faults: [], a: ['pick', 'exchange', 'settle'], b: ['exchange', 'settle'] },
    { bounds: { preemptions: 1, faults: 1 }, faults: ['crash'] as const, a: ['exchange', 'settle'], b: ['exchange'] },
  ])('$bounds', { timeout: 400_000 }, async ({ bounds, ...how }) => {
    const seen: Seen = { kept: 0, shared: 0 };
    const runs = await everySchedule(bounds, choose => run(choose, seen, how));
    expect(runs).toBeGreaterThan(100);
    expect(seen.kept).toBeGreaterThan(10);
    expect(seen.shared).toBeGreaterThan(10);
  });
});
