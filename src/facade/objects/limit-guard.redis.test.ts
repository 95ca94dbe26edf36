import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom, type Random } from '../../../test/support/facade/random.ts';
import { createCreations } from '../../accounts/creations.ts';
import type { KindName } from '../../api/kinds/kinds.ts';
import { Refusal } from '../../http/refusal.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import type { RedisClient } from '../../redis/client.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { systemClock } from '../../time/clock.ts';
import type { Caches } from './caches.ts';
import { createLimitGuard } from './limit-guard.ts';

/** Rounds on each Redis. `make test-limits ROUNDS=1000` runs more. */
const ROUNDS = Number(process.env['ROUNDS'] || 50);
const SEED = Number(process.env['SEED'] || 1);
const REPLICAS = 2;
/** Rounds at the same time, each with an account of its own. */
const AT_ONCE = 10;
const MOST_LAG_MS = 40;

/** The objects of an account in the API server, which each replica sees some time later. */
function createStore(account: string, limit: number, random: Random) {
  const stored = new Set<string>();
  const replicas: { cached: Set<string>; handlers: Map<KindName, ChangeHandler<unknown>[]> }[] = [];
  const spec = { plan: 'Metered', limits: { streams: limit } };
  return {
    stored,
    /** Creates the object, and tells each replica. Fails sometimes. */
    async create(key: string): Promise<void> {
      await delay(random.below(5));
      if (random.below(8) === 0) throw new Refusal('invalid_request');
      stored.add(key);
      for (const { cached, handlers } of replicas) {
        void delay(random.below(MOST_LAG_MS)).then(() => {
          cached.add(key);
          for (const handler of handlers.get('CatalogStream') ?? []) handler('added', key, undefined, {});
        });
      }
      await delay(random.below(5));
    },
    openReplica(redis: RedisClient) {
      const replica = { cached: new Set<string>(), handlers: new Map<KindName, ChangeHandler<unknown>[]>() };
      replicas.push(replica);
      const caches = {
        get: (kind: KindName, { namespace, name }: { namespace?: string; name: string }) => {
          if (kind === 'Account') return { metadata: { name: account }, spec };
          if (kind === 'Workspace') return { spec: { account } };
          return replica.cached.has(`${namespace}/${name}`) ? {} : undefined;
        },
        live: async (kind: KindName) => (kind === 'Account' ? { metadata: { name: account }, spec } : undefined),
        reflector: (kind: KindName) => ({
          subscribe: (handler: ChangeHandler<unknown>) =>
            replica.handlers.set(kind, [...(replica.handlers.get(kind) ?? []), handler]),
        }),
      } as unknown as Caches;
      const guard = createLimitGuard({
        caches,
        policy: { byPlan: { Free: {}, Metered: {} }, ceilings: {} },
        creations: createCreations(redis, Date.now),
        clock: systemClock,
      });
      for (const handler of replica.handlers.get('Workspace') ?? []) {
        handler('added', 'shop', undefined, { spec: { account } });
      }
      return guard;
    },
  };
}

/** Creates objects through all replicas at once. Returns how many there are then, and how the calls ended. */
async function runRound(redis: RedisClient, seed: number) {
  const random = createRandom(seed);
  const limit = 1 + random.below(60);
  const store = createStore(`acme-${randomUUID()}`, limit, random);
  const guards = Array.from({ length: REPLICAS }, () => store.openReplica(redis));
  const ends = { made: 0, refused: 0, failed: 0 };
  const calls = Array.from({ length: limit + 10 + random.below(40) }, async (_, n) => {
    await delay(random.below(30));
    const object = { namespace: 'shop', name: `s-${n}` };
    try {
      await guards[n % REPLICAS]?.create('CatalogStream', object, {}, () => store.create(`shop/s-${n}`));
      ends.made++;
    } catch (error) {
      ends[error instanceof Refusal && error.code === 'limit_reached' ? 'refused' : 'failed']++;
    }
  });
  await Promise.all(calls);
  return { limit, stored: store.stored.size, ...ends };
}

onEachRedis(redis => {
  test(`two replicas at once never create more than the limit and one, in ${ROUNDS} rounds`, async () => {
    let reached = 0;
    for (let round = 0; round < ROUNDS; round += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, ROUNDS - round) }, (_, n) => SEED + round + n);
      const rounds = await Promise.all(seeds.map(async seed => ({ seed, ...(await runRound(redis(), seed)) })));
      for (const { seed, limit, stored, made, refused, failed } of rounds) {
        expect(stored, `seed ${seed}`).toBeLessThanOrEqual(limit + 1);
        expect(made, `seed ${seed}`).toBe(stored);
        // A call is only refused if enough others were stored, or were being created at that moment.
        if (refused > 0) expect(stored + failed, `seed ${seed}`).toBeGreaterThanOrEqual(limit);
        if (stored >= limit) reached++;
      }
    }
    expect(reached).toBeGreaterThan(ROUNDS / 2);
  }, 1_200_000);

  test('an object that could not be created leaves its place to others', async () => {
    const store = createStore(`acme-${randomUUID()}`, 1, createRandom(1));
    const [first, second] = [store.openReplica(redis()), store.openReplica(redis())];
    const fail = () => Promise.reject(new Refusal('invalid_request'));
    await expect(first.create('CatalogStream', { namespace: 'shop', name: 'a' }, {}, fail)).rejects.toThrow();
    const make = async () => 'made';
    expect(await second.create('CatalogStream', { namespace: 'shop', name: 'b' }, {}, make)).toBe('made');
    // The cache of the first replica does not have it yet.
    await expect(first.create('CatalogStream', { namespace: 'shop', name: 'c' }, {}, make)).rejects.toMatchObject({
      code: 'limit_reached',
    });
  });

  test('an object that may have been created keeps its place', async () => {
    const store = createStore(`acme-${randomUUID()}`, 1, createRandom(1));
    const [first, second] = [store.openReplica(redis()), store.openReplica(redis())];
    const lost = () => Promise.reject(new Refusal('unavailable'));
    await expect(first.create('CatalogStream', { namespace: 'shop', name: 'a' }, {}, lost)).rejects.toThrow();
    const make = async () => 'made';
    await expect(second.create('CatalogStream', { namespace: 'shop', name: 'b' }, {}, make)).rejects.toMatchObject({
      code: 'limit_reached',
    });
    expect(await second.create('CatalogStream', { namespace: 'shop', name: 'a' }, {}, make)).toBe('made');
  });
});
