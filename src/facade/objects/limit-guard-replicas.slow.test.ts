import { describe, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import { type Choices, createChoices } from '../../../test/support/random.ts';
import type { KindName } from '../../api/kinds/kinds.ts';
import { Refusal } from '../../http/refusal.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import { sleep } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';
import { createLimitGuard } from './limit-guard.ts';

/** The number of rounds. `make test-limits` uses 1,000. */
const ROUNDS = Number(process.env['ROUNDS'] || 100);
const SEED = Number(process.env['SEED'] || 1);

/**
 * The API server. It contains the streams of the account `acme`, and reports each change to the watches of all
 * replicas.
 */
function createStore() {
  const names = new Set<string>();
  const watches: ((name: string, isAdded: boolean) => void)[] = [];
  const store = {
    names,
    most: 0,
    watch: (tell: (typeof watches)[number]) => watches.push(tell),
    put(name: string) {
      names.add(name);
      store.most = Math.max(store.most, names.size);
      for (const tell of watches) tell(name, true);
    },
    remove(name: string) {
      if (names.delete(name)) for (const tell of watches) tell(name, false);
    },
  };
  return store;
}

/** A replica whose cache receives each change after `lagMs`, in order. */
function createReplica(options: {
  readonly store: ReturnType<typeof createStore>;
  readonly clock: ManualClock;
  readonly limit: number;
  readonly lagMs: () => number;
  readonly writeMs: () => number;
  readonly fails: () => boolean;
}) {
  const { store, clock, limit, lagMs, writeMs, fails } = options;
  const handlers: ChangeHandler<unknown>[] = [];
  const cached = new Set<string>();
  const account = { metadata: { name: 'acme' }, spec: { plan: 'Metered', limits: { streams: limit } } };
  const workspace = { spec: { account: 'acme' } };
  const caches = {
    get: (kind: KindName, { name }: { name: string }) => {
      if (kind === 'Account') return account;
      return kind === 'Workspace' ? workspace : cached.has(name) ? {} : undefined;
    },
    live: async (kind: KindName) => {
      await sleep(clock, writeMs());
      return kind === 'Account' ? account : undefined;
    },
    reflector: (kind: KindName) => ({
      subscribe: (handler: ChangeHandler<unknown>) => {
        if (kind === 'Workspace') handler('added', 'shop', undefined, workspace);
        if (kind === 'CatalogStream') handlers.push(handler);
      },
    }),
  } as unknown as Caches;
  const guard = createLimitGuard({ caches, policy: { byPlan: { Free: {}, Metered: {} }, ceilings: {} }, clock });

  let notifiedMs = 0;
  store.watch((name, isAdded) => {
    notifiedMs = Math.max(notifiedMs, clock.nowMs() + lagMs());
    clock.setTimer(() => {
      if (isAdded) cached.add(name);
      else cached.delete(name);
      const change = isAdded ? (['added', undefined, {}] as const) : (['deleted', {}, undefined] as const);
      for (const handler of handlers) handler(change[0], `shop/${name}`, change[1], change[2]);
    }, notifiedMs - clock.nowMs());
  });

  async function write(name: string): Promise<void> {
    await sleep(clock, writeMs());
    if (fails()) throw new Error('failed');
    store.put(name);
    await sleep(clock, writeMs());
  }
  return {
    create: (name: string) =>
      guard
        .create('CatalogStream', { namespace: 'shop', name }, {}, () => write(name))
        .then(
          () => 'made' as const,
          (error: unknown) => (error instanceof Refusal ? error.code : 'failed'),
        ),
  };
}

/** Sends concurrent calls to several replicas. Returns the responses by name. */
async function run(options: {
  readonly replicas: number;
  readonly limit: number;
  readonly calls: number;
  readonly removals: number;
  /** The fraction of calls that fail: one in this number, or none if it is 0. */
  readonly failures: number;
  readonly random: Choices;
  /** The delay of the replica with this number. */
  readonly lagMs: (replica: number) => number;
  readonly writeMs: (replica: number) => number;
}) {
  const { limit, calls, failures, random } = options;
  const clock = createManualClock();
  const store = createStore();
  const replicas = Array.from({ length: options.replicas }, (_, n) =>
    createReplica({
      store,
      clock,
      limit,
      lagMs: () => options.lagMs(n),
      writeMs: () => options.writeMs(n),
      fails: () => failures > 0 && random.below(failures) === 0,
    }),
  );
  const spreadMs = 1 + random.below(500);
  const answers = new Map<string, string>();
  for (let n = 0; n < calls; n++) {
    const name = `s${n}`;
    const send = () =>
      void random
        .pick(replicas)
        .create(name)
        .then(answer => answers.set(name, answer));
    clock.setTimer(send, random.below(spreadMs));
  }
  for (let n = 0; n < options.removals; n++) {
    clock.setTimer(() => store.remove(`s${random.below(calls)}`), random.below(spreadMs));
  }
  while (answers.size < calls) await clock.advance(1_000);
  return { store, answers };
}

describe('replicas whose caches are delayed', () => {
  test('exceed a limit by at most one each, and do not store refused objects', async () => {
    const random = createChoices(SEED);
    const found = { reached: 0, passed: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const replicas = 2 + random.below(2);
      const limit = random.below(random.pick([8, 60, 150, 400]));
      const removals = random.below(2) === 0 ? 0 : random.below(30);
      const slowest = Array.from({ length: replicas }, () => 1 + random.below(100));
      const { store, answers } = await run({
        replicas,
        limit,
        calls: 1 + random.below(limit * 2),
        removals,
        failures: random.below(2) * 10,
        random,
        lagMs: replica => random.below(slowest[replica] as number),
        writeMs: () => 1 + random.below(10),
      });
      const of = (answer: string) => [...answers].filter(([, each]) => each === answer).map(([name]) => name);
      const [made, refused, failed] = [of('made'), of('limit_reached'), of('failed')];
      expect([round, made.length + refused.length + failed.length]).toEqual([round, answers.size]);
      expect([round, store.most <= limit + replicas - 1]).toEqual([round, true]);
      expect([round, [...refused, ...failed].filter(name => store.names.has(name))]).toEqual([round, []]);
      // Calls are only refused after existing objects and objects being created have reached the limit.
      const isReached = made.length + failed.length >= limit;
      if (removals === 0) expect([round, refused.length === 0 || isReached]).toEqual([round, true]);
      if (store.most >= limit) found.reached++;
      if (store.most > limit) found.passed++;
    }
    expect(found.reached).toBeGreaterThan(ROUNDS / 4);
    expect(found.passed).toBeGreaterThan(0);
  }, 120_000);

  test('exceed it by at most the objects that one of them creates concurrently, even if it is slow', async () => {
    const random = createChoices(SEED);
    for (let round = 0; round < ROUNDS / 100; round++) {
      const { store } = await run({
        replicas: 2,
        limit: 1_500,
        calls: 3_100,
        removals: 0,
        failures: 0,
        random,
        lagMs: replica => (replica === 0 ? 1_900 : 1),
        writeMs: replica => (replica === 0 ? 1_000 : 1),
      });
      expect(store.most).toBeGreaterThanOrEqual(1_500);
      expect(store.most).toBeLessThanOrEqual(1_500 + 64);
    }
  }, 120_000);
});
