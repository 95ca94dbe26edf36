import { describe, expect, test } from 'vitest';
import { stepsOf } from '../../test/support/controller/steps.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { keyRingOf } from '../core/delivery/key-ring.ts';
import type { ControlStore } from '../record/control-store.ts';
import { RedisInstanceError } from '../redis/format.ts';
import { createLogger } from '../telemetry/log.ts';
import { ForeignRedisError } from './epoch-claim.ts';
import { createLeadership, type LeadershipDeps } from './leadership.ts';
import { createTenants } from './routes/tenants.ts';
import { createTerms } from './term.ts';

/** A leadership which is only tested until it starts. */
function begin(read: () => void) {
  const term = new AbortController();
  const claimed: number[] = [];
  const terms = createTerms();
  const leading = createLeadership({
    terms,
    client: {
      get: async () => {
        read();
        return { metadata: { uid: 'cluster' } };
      },
    },
    control: {
      lead: async (_uid: string, transitions: number) => {
        claimed.push(transitions);
        throw new Error('claimed');
      },
    },
    nowMs: () => 0,
    log: createLogger({ level: 'silent' }),
  } as unknown as LeadershipDeps);
  return { term, claimed, leading, terms };
}

test('a term that ends while it is starting does not claim an epoch, which would fence its successor', async () => {
  const { term, claimed, leading, terms } = begin(() => term.abort());
  await expect(leading.begin({ transitions: 7, signal: term.signal })).rejects.toThrow('aborted');
  expect(claimed).toEqual([]);
  expect(() => terms.fence()).toThrow('not leading');
});

test('claims the epoch if the term continues', async () => {
  const { term, claimed, leading } = begin(() => {});
  await expect(leading.begin({ transitions: 7, signal: term.signal })).rejects.toThrow('claimed');
  expect(claimed).toEqual([7]);
});

/** Creates a leadership for three tenants. The routes of the named tenants cannot be applied. */
function beginOver(...broken: string[]) {
  const term = new AbortController();
  const story: string[] = [];
  const tenants = ['ada', 'bob', 'eve'];
  const leading = createLeadership({
    terms: createTerms(),
    client: { get: async () => ({ metadata: { uid: 'cluster' } }) },
    control: {
      lead: async () => ({ epoch: 3 }),
      readCluster: async () => ({ ready: true }),
      markClusterReady: async (fence: number) => void story.push(`whole ${fence}`),
    },
    caches: { Workspace: { store: new Map() } },
    tenants: {
      names: () => tenants,
      forget: () => {},
      sync: async (name: string) => {
        if (broken.includes(name)) throw new Error(`${name} is broken`);
        story.push(`sync ${name}`);
      },
    },
    controllers: { enqueue: (_controller: string, name: string) => void story.push(`again ${name}`) },
    nowMs: () => 0,
    clock: { setTimer: () => () => {} },
    log: createLogger({ level: 'silent' }),
  } as unknown as LeadershipDeps);
  return { story, begin: () => leading.begin({ transitions: 1, signal: term.signal }), end: () => term.abort() };
}

test('retries a tenant whose routes cannot be applied without delaying others', async () => {
  const { story, begin, end } = beginOver('bob');
  await begin();
  expect(story).toEqual(['sync ada', 'sync eve', 'whole 3', 'again bob']);
  end();
});

test('the term does not start if no tenant can be applied', async () => {
  const { story, begin } = beginOver('ada', 'bob', 'eve');
  await expect(begin()).rejects.toThrow('ada is broken');
  expect(story).toEqual([]);
});

/** Creates a leadership for real tenants without objects, using a Redis that is controlled by the test. */
function createLeader(names = ['acme']) {
  const clock = createManualClock();
  const redis = {
    lead: async (): Promise<{ epoch: number; store?: string } | { other: string }> => ({ epoch: 1 }),
    ready: true,
    looks: 0,
    /** Awaited before the response to a check. */
    look: async () => {},
    /** Awaited before a tenant is read. */
    read: async (_tenant: string) => {},
    /** Awaited before the response to marking the data as ready. */
    mark: async () => {},
  };
  const control = {
    lead: () => redis.lead(),
    readCluster: async () => {
      redis.looks++;
      await redis.look();
      return { uid: 'cluster', ready: redis.ready, epoch: 1 };
    },
    markClusterReady: async () => {
      redis.ready = true;
      await redis.mark();
    },
    readTenant: async (tenant: string) => {
      await redis.read(tenant);
      return { ready: new Set(), routes: { tenant, payer: '', keys: {}, queues: {}, integrations: {} } };
    },
  } as unknown as ControlStore;
  const terms = createTerms();
  const tenants = createTenants({
    control,
    clock,
    nowMs: () => 0,
    compile: {
      queueMaxBytes: 1,
      judgeEndpoint: () => 'ok',
      sealEndpoint: () => 'sealed',
      openHeader: () => '',
      keys: keyRingOf(new Uint8Array(32)),
    },
    fence: terms.fence,
    explain: error => error,
    prepare: async () => {},
    gather: name =>
      stepsOf({ name, secretKeys: [], streams: [], packages: [], integrations: [], blocks: [], subscriptions: [] }),
    objectsOf: () => [],
    knowsKeys: () => true,
    isPaused: () => false,
    openGates: () => new Map(),
    exclusively: (_name, restore) => restore(),
    onChanged: () => {},
  });
  const events: string[] = [];
  const enqueued: string[] = [];
  const leading = createLeadership({
    client: { get: async () => ({ metadata: { uid: 'cluster' } }) as never },
    control,
    caches: {
      Workspace: { store: new Map(names.map(name => [name, { metadata: { name } }])) },
      Account: { store: new Map([['paying', {}]]) },
    } as never,
    tenants,
    events: { record: (_object, { reason }) => void events.push(reason) },
    terms,
    controllers: { enqueue: (controller, name) => void enqueued.push(`${controller} ${name}`) },
    nowMs: () => 0,
    clock,
    log: createLogger({ level: 'silent' }),
  });
  const start = (transitions: number, lastStore?: string) => {
    const lost = new AbortController();
    const begin = () => leading.begin({ transitions, lastStore, signal: lost.signal });
    return { begin, lose: () => lost.abort() };
  };
  return { clock, redis, tenants, events, enqueued, leading, terms, start };
}

test.each([
  { lastStore: 'former', reported: ['RedisReplaced'] },
  { lastStore: 'current', reported: [] },
  { lastStore: undefined, reported: [] },
])('reports once that the last leader used another Redis: $lastStore', async ({ lastStore, reported }) => {
  const { clock, redis, events, start } = createLeader();
  redis.lead = async () => ({ epoch: 1, store: 'current' });
  const { begin } = start(1, lastStore);
  await begin();
  const again = begin();
  await clock.advance(5_000);
  await again;
  expect(events).toEqual(reported);
});

test('after a loss of Redis, the plans of accounts are applied again', async () => {
  const { clock, redis, enqueued, start } = createLeader();
  await start(1).begin();
  redis.ready = false;
  await clock.advance(6_000);
  expect([redis.ready, enqueued]).toEqual([true, ['account paying']]);
});

test('after reconnecting to Redis, nothing counts as applied until it is compared with Redis again', async () => {
  const { tenants, enqueued, leading, start } = createLeader();
  leading.onReconnect();
  expect(enqueued).toEqual([]);
  await start(1).begin();
  expect(tenants.isSynced('acme')).toBe(true);
  leading.onReconnect();
  expect([tenants.isSynced('acme'), enqueued]).toEqual([false, ['routes acme']]);
});

describe('a term that ends', () => {
  test('between the loss of Redis and its rebuild does not hold anything back for the next term', async () => {
    const { clock, redis, tenants, events, leading, terms, start } = createLeader();
    const first = start(1);
    await first.begin();
    expect(leading.works()).toBe(true);
    redis.ready = false;
    await clock.advance(1_000);
    expect(events).toEqual(['ControlStateLost']);
    expect(() => terms.fence()).toThrow('Redis has lost its control state');
    expect(leading.works()).toBe(false);
    expect(leading.failure()).toMatchObject({ reason: 'RedisUnavailable' });
    first.lose();
    await clock.advance(5_000);
    await start(2).begin();
    expect(tenants.isSynced('acme')).toBe(true);
    expect(leading.works()).toBe(true);
    expect(redis.ready).toBe(true);
  });

  test('while Redis returns its epoch does not count as a term that has written to this Redis', async () => {
    const { clock, redis, terms, start } = createLeader();
    const answer = Promise.withResolvers<{ epoch: number; store: string }>();
    redis.lead = () => answer.promise;
    let reads = 0;
    redis.read = async () => void reads++;
    const term = start(1);
    const beginning = term.begin();
    await clock.advance(1);
    term.lose();
    answer.resolve({ epoch: 1, store: 'redis-1' });
    await expect(beginning).rejects.toThrow('aborted');
    expect([terms.store(), reads]).toEqual([undefined, 0]);
  });

  test('does not set a fence or start a watch while the routes of tenants are being applied', async () => {
    const { clock, redis, terms, start } = createLeader();
    const read = Promise.withResolvers<void>();
    redis.read = () => read.promise;
    const term = start(1);
    const beginning = term.begin();
    await clock.advance(1);
    term.lose();
    await expect(beginning).rejects.toThrow('aborted');
    read.resolve();
    await clock.advance(5_000);
    expect(redis.looks).toBe(0);
    expect(() => terms.fence()).toThrow('not leading');
  });

  test('while the watch checks Redis does not hold back or record anything', async () => {
    const { clock, redis, events, start } = createLeader();
    const look = Promise.withResolvers<void>();
    redis.look = () => look.promise;
    const term = start(1);
    await term.begin();
    await clock.advance(1_000);
    expect(redis.looks).toBe(1);
    redis.ready = false;
    term.lose();
    look.resolve();
    await clock.advance(5_000);
    expect(events).toEqual([]);
    expect(redis.looks).toBe(1);
  });
});

describe('bringing tenants into force', () => {
  const names = Array.from({ length: 40 }, (_, n) => `tenant-${n}`);

  test('processes 16 tenants at a time, and a tenant that does not respond does not block others', async () => {
    const { clock, redis, tenants, leading, start } = createLeader(names);
    const running = new Set<string>();
    let most = 0;
    let hung: string | undefined;
    redis.read = async tenant => {
      running.add(tenant);
      most = Math.max(most, running.size);
      hung ??= tenant;
      if (tenant === hung) await new Promise(() => {});
      await new Promise(setImmediate);
      running.delete(tenant);
    };
    const term = start(1);
    const beginning = term.begin();
    while (names.filter(tenants.isSynced).length < 39) await clock.advance(1);
    expect(most).toBe(16);
    expect(running).toEqual(new Set([hung]));
    expect(leading.works()).toBe(true);
    term.lose();
    await expect(beginning).rejects.toThrow('aborted');
  });
});

describe('a term without Redis', () => {
  test('reports RedisUnavailable until Redis is reachable, and then works', async () => {
    const { clock, redis, tenants, leading, terms, start } = createLeader();
    redis.lead = () => Promise.reject(new Error('Connection is closed.'));
    const term = start(1);
    await expect(term.begin()).rejects.toThrow('Connection is closed.');
    const refusal = { name: 'ReconcileError', reason: 'RedisUnavailable' };
    await expect(tenants.sync('acme')).rejects.toMatchObject(refusal);
    expect(leading.failure()).toMatchObject({ message: 'Connection is closed.' });
    expect(leading.works()).toBe(false);
    redis.lead = async () => ({ epoch: 5 });
    const began = term.begin();
    await clock.advance(100);
    await began;
    expect(terms.fence()).toBe(5);
    expect([leading.works(), leading.failure()]).toEqual([true, undefined]);
    const synced = tenants.sync('acme');
    await clock.advance(100);
    await synced;
  });

  test('reports the Redis of another cluster', async () => {
    const { redis, tenants, leading, start } = createLeader();
    redis.lead = async () => ({ other: 'theirs' });
    await expect(start(1).begin()).rejects.toThrow(ForeignRedisError);
    await expect(tenants.sync('acme')).rejects.toMatchObject({
      reason: 'RedisUnavailable',
      message: expect.stringContaining('another Kubernetes cluster'),
    });
    expect(leading.failure()).toBeInstanceOf(ForeignRedisError);
  });

  test('reports the Redis of another installation in the cluster', async () => {
    const { redis, tenants, leading, start } = createLeader();
    redis.lead = () => Promise.reject(new RedisInstanceError('blue', ''));
    await expect(start(1).begin()).rejects.toThrow(RedisInstanceError);
    await expect(tenants.sync('acme')).rejects.toMatchObject({
      reason: 'RedisUnavailable',
      message: expect.stringContaining('another installation'),
    });
    expect(leading.failure()).toBeInstanceOf(RedisInstanceError);
  });

  test('that cannot rebuild a lost Redis does not work until this is possible', async () => {
    const { clock, redis, events, leading, terms, start } = createLeader();
    await start(1).begin();
    redis.ready = false;
    redis.lead = () => Promise.reject(new Error('READONLY'));
    await clock.advance(10_000);
    expect(leading.works()).toBe(false);
    expect(leading.failure()).toMatchObject({ message: 'READONLY' });
    redis.lead = async () => ({ epoch: 2 });
    await clock.advance(5_000);
    expect([leading.works(), leading.failure(), terms.fence()]).toEqual([true, undefined, 2]);
    expect(events.at(-1)).toBe('ControlStateRebuilt');
  });

  test.each(['before', 'after'])(
    'rebuilds even if the data is there again %s a first attempt has failed',
    async when => {
      const { clock, redis, tenants, enqueued, leading, start } = createLeader();
      await start(1).begin();
      redis.ready = false;
      if (when === 'before') redis.lead = () => Promise.reject(new Error('READONLY'));
      else redis.mark = () => Promise.reject(new Error('Command timed out'));
      await clock.advance(3_500);
      expect(leading.works()).toBe(false);
      redis.ready = true;
      redis.lead = async () => ({ epoch: 2 });
      redis.mark = async () => {};
      await clock.advance(5_000);
      expect([leading.works(), leading.failure(), tenants.isSynced('acme')]).toEqual([true, undefined, true]);
      expect(enqueued).toEqual(['account paying']);
    },
  );
});
