import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { KindName } from '../../api/kinds/kinds.ts';
import { Refusal } from '../../http/refusal.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import type { Caches } from '../caches/caches.ts';
import { createLimitGuard } from './limit-guard.ts';

const WORKSPACES = ['shop', 'shop-2'];

/** An account `acme` with two workspaces, whose caches are updated when `see` is called. */
function setUp(limit: number, ceiling?: number) {
  const clock = createManualClock();
  const handlers = new Map<KindName, ChangeHandler<unknown>[]>();
  const cached = new Map<string, object>();
  const account = (streams: number) => ({
    metadata: { name: 'acme' },
    spec: { plan: 'Metered', limits: { streams, activations: limit } },
  });
  let live = account(limit);
  let liveReads = 0;
  const caches = {
    get: (kind: KindName, { namespace, name }: { namespace?: string; name: string }) => {
      if (kind === 'Account') return account(limit);
      if (kind === 'Workspace') return WORKSPACES.includes(name) ? { spec: { account: 'acme' } } : undefined;
      return cached.get(`${kind} ${namespace}/${name}`);
    },
    live: async (kind: KindName) => {
      liveReads += 1;
      return kind === 'Account' ? live : undefined;
    },
    reflector: (kind: KindName) => ({
      subscribe: (handler: ChangeHandler<unknown>) => handlers.set(kind, [...(handlers.get(kind) ?? []), handler]),
    }),
  } as unknown as Caches;
  const change = (what: 'added' | 'deleted', kind: KindName, key: string, object: object = {}) => {
    const old = cached.get(`${kind} ${key}`);
    if (what === 'added') cached.set(`${kind} ${key}`, object);
    else cached.delete(`${kind} ${key}`);
    const [is, current] = what === 'deleted' ? [what, undefined] : [old === undefined ? what : 'updated', object];
    for (const handler of handlers.get(kind) ?? []) handler(is as 'added', key, old, current);
  };
  const policy = {
    byPlan: { Free: {}, Metered: {} },
    ceilings: ceiling === undefined ? {} : { streams: ceiling },
  };
  const guard = createLimitGuard({ caches, policy, clock });
  for (const name of WORKSPACES) {
    for (const handler of handlers.get('Workspace') ?? [])
      handler('added', name, undefined, { spec: { account: 'acme' } });
  }
  const stored: string[] = [];
  return {
    clock,
    guard,
    stored,
    liveReads: () => liveReads,
    see: (key: string, kind: KindName = 'CatalogStream', object: object = {}) => change('added', kind, key, object),
    lose: (key: string, kind: KindName = 'CatalogStream') => change('deleted', kind, key),
    raise: (streams: number) => {
      live = account(streams);
    },
    create: (key: string, kind: KindName = 'CatalogStream', spec: object = {}) => {
      const [namespace, name = ''] = key.split('/');
      return guard
        .create(kind, { namespace, name }, spec, async () => stored.push(key))
        .then(
          () => 'made',
          error => (error instanceof Refusal ? error.code : error),
        );
    },
  };
}

/** Runs everything that does not wait for the cache or the clock. */
const settle = async () => {
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
};

test('the limit applies to all workspaces of the account, and nothing is created beyond it', async () => {
  const { create, see, stored, guard } = setUp(2);
  see('shop/a');
  see('shop-2/b');
  expect(guard.countOf('acme', 'streams')).toBe(2);
  expect(await create('shop/c')).toBe('limit_reached');
  expect(stored).toEqual([]);
});

test('the refusal contains the limit, its value, its usage, and who can raise it', async () => {
  const { guard, see } = setUp(1);
  see('shop/a');
  const refused = guard.create('CatalogStream', { namespace: 'shop', name: 'b' }, {}, async () => undefined);
  await expect(refused).rejects.toMatchObject({
    facts: {
      detail: expect.stringMatching(
        /^The account acc_[0-9a-z]{20} has 1 streams in all of its workspaces together\. Its limit is 1\. Nothing was changed\. Ask the operator of this Sluice to raise streams for this account\.$/,
      ),
    },
  });
});

test('the refusal explains that the limit is the ceiling of the installation', async () => {
  const { guard, see } = setUp(5, 1);
  see('shop/a');
  const refused = guard.create('CatalogStream', { namespace: 'shop', name: 'b' }, {}, async () => undefined);
  await expect(refused).rejects.toMatchObject({
    facts: {
      detail: expect.stringContaining(
        'The installation does not allow a higher limit (SLUICE_MAX_LIMITS). Only its operator can raise this maximum.',
      ),
    },
  });
});

test('concurrent calls do not exceed the limit, even if none of their objects is in the cache yet', async () => {
  const { create, see, stored } = setUp(3);
  const answers = Array.from({ length: 10 }, (_, n) => create(`shop/s${n}`));
  await settle();
  // Near the limit, each object must be in the cache before the next object is created.
  expect(stored).toEqual(['shop/s0']);
  for (const key of ['shop/s0', 'shop/s1', 'shop/s2']) {
    see(key);
    await settle();
  }
  expect((await Promise.all(answers)).filter(answer => answer === 'made')).toHaveLength(3);
  expect(stored).toEqual(['shop/s0', 'shop/s1', 'shop/s2']);
});

test.each([
  // This is a sixteenth of the remaining objects.
  [31, 1, 1],
  [32, 1, 1],
  [33, 2, 0],
  [100, 5, 1],
  [1_000, 58, 1],
  [100_000, 64, 1],
])(
  'of %i remaining objects, %i are created immediately, and %i after the first of them is in the cache',
  async (left, atOnce, next) => {
    const { create, see, stored } = setUp(left);
    const answers = Array.from({ length: 200 }, (_, n) => create(`shop/s${n}`));
    await settle();
    expect(stored).toHaveLength(atOnce);
    await Promise.all(answers.slice(0, atOnce));
    see('shop/s0');
    await settle();
    expect(stored).toHaveLength(atOnce + next);
  },
);

test('a call that would wait for more than 5 s does not create anything', async () => {
  const { clock, create, stored } = setUp(32);
  const answers = Array.from({ length: 6 }, (_, n) =>
    create(`shop/s${n}`).catch((error: unknown) => (error instanceof Refusal ? error.code : error)),
  );
  // None of the objects is in the cache, so the next object is created 2 s after the previous one.
  for (let ms = 0; ms < 20_000; ms += 100) await clock.advance(100);
  expect(await Promise.all(answers)).toEqual(['made', 'made', 'made', 'overloaded', 'overloaded', 'overloaded']);
  expect(stored).toHaveLength(3);
});

test('an object that could not be created is not counted', async () => {
  const { guard, create, see } = setUp(1);
  const failing = guard.create('CatalogStream', { namespace: 'shop', name: 'a' }, {}, async () => {
    throw new Error('the API server is unavailable');
  });
  await expect(failing).rejects.toThrow('unavailable');
  const answer = create('shop/b');
  await settle();
  see('shop/b');
  expect(await answer).toBe('made');
});

test('an object that the watch never reports is not counted forever', async () => {
  const { create, clock, stored } = setUp(1);
  const first = create('shop/a');
  await settle();
  await clock.advance(2_000);
  expect(await first).toBe('made');
  const second = create('shop/b');
  await settle();
  await clock.advance(2_000);
  expect(await second).toBe('made');
  expect(stored).toHaveLength(2);
});

test('a call succeeds even if the same object is created by another call in the meantime', async () => {
  const { clock, create, see, lose } = setUp(33);
  see('shop/x');
  const first = create('shop/a');
  await settle();
  // More objects are available now, so the second call does not wait for the first one.
  lose('shop/x');
  expect(await create('shop/a')).toBe('made');
  see('shop/a');
  await clock.advance(2_000);
  expect(await first).toBe('made');
});

test('a call continues when the cache contains an object that two other calls have created', async () => {
  const { create, see, stored } = setUp(10);
  const answers = [create('shop/a'), create('shop/b')];
  await settle();
  answers.push(create('shop/a'));
  await settle();
  expect(stored).toEqual(['shop/a', 'shop/a']);
  see('shop/a');
  await settle();
  expect(stored.at(-1)).toBe('shop/b');
  expect(await Promise.all(answers)).toEqual(['made', 'made', 'made']);
});

test('an object can be created again while the cache still contains the deleted one', async () => {
  const { create, see, clock } = setUp(1);
  see('shop/a');
  const answer = create('shop/a');
  await settle();
  await clock.advance(2_000);
  expect(await answer).toBe('made');
});

test('released capacity is used immediately', async () => {
  const { create, see, lose } = setUp(1);
  see('shop/a');
  expect(await create('shop/b')).toBe('limit_reached');
  lose('shop/a');
  const answer = create('shop/b');
  await settle();
  see('shop/b');
  expect(await answer).toBe('made');
});

test('a raised limit is in force before the cache contains it; calls within the limit do not read anything', async () => {
  const { create, see, raise, liveReads } = setUp(1);
  const within = create('shop/a');
  await settle();
  see('shop/a');
  expect([await within, liveReads()]).toEqual(['made', 0]);
  raise(2);
  const answer = create('shop/b');
  await settle();
  see('shop/b');
  expect([await answer, liveReads()]).toEqual(['made', 1]);
});

test('uses the points of the Free plan until the account is known', () => {
  const { guard } = setUp(1);
  const policy = { byPlan: { Free: { requestsPerMinute: 7 }, Metered: { requestsPerMinute: 9 } }, ceilings: {} };
  const caches = {
    get: (_kind: string, { name }: { name: string }) => (name === 'acme' ? { spec: { plan: 'Metered' } } : undefined),
    reflector: () => ({ subscribe: () => undefined }),
  } as unknown as Caches;
  const other = createLimitGuard({ caches, policy, clock: createManualClock() });
  expect(['acme', 'new'].map(other.pointsPerMinuteOf)).toEqual([9, 7]);
  expect(guard.pointsPerMinuteOf('acme')).toBeUndefined();
});

test('objects that close a route can be created beyond the limit', async () => {
  const { guard, create } = setUp(0);
  expect(guard.of({ spec: { plan: 'Metered', owners: [], includedTokens: 0, limits: { blocks: 0 } } })).toEqual({
    blocks: 0,
  });
  expect(await create('shop/a', 'Activation', { revoked: true })).toBe('made');
  expect(await create('shop/b', 'Block', { target: { kind: 'Package' } })).toBe('made');
});

describe('revoked activations', () => {
  const REVOKED = { spec: { revoked: true } };
  const OPEN = { spec: {} };

  test('are not counted until they are activated again', async () => {
    const { create, see, guard } = setUp(2);
    see('shop/a', 'Activation', OPEN);
    see('shop/b', 'Activation', REVOKED);
    expect(guard.countOf('acme', 'activations')).toBe(1);
    const answer = create('shop/c', 'Activation');
    await settle();
    see('shop/c', 'Activation', OPEN);
    expect(await answer).toBe('made');
    expect(await create('shop/b', 'Activation')).toBe('limit_reached');
    see('shop/a', 'Activation', REVOKED);
    const again = create('shop/b', 'Activation');
    await settle();
    // A change of its status does not activate it.
    see('shop/b', 'Activation', REVOKED);
    expect(await create('shop/a', 'Activation')).toBe('limit_reached');
    see('shop/b', 'Activation', OPEN);
    expect(await again).toBe('made');
    expect(guard.countOf('acme', 'activations')).toBe(2);
  });

  test('have the same limit, in addition to the limit for open ones', async () => {
    const { guard, create, see, lose } = setUp(2);
    for (const key of ['shop/a', 'shop/b', 'shop-2/c', 'shop-2/d']) see(key, 'Activation', REVOKED);
    const refused = guard.create('Activation', { namespace: 'shop', name: 'e' }, {}, async () => undefined);
    await expect(refused).rejects.toMatchObject({
      facts: { detail: expect.stringContaining('has 4 activations, including revoked ones') },
    });
    const opened = create('shop/a', 'Activation');
    await settle();
    see('shop/a', 'Activation', OPEN);
    expect(await opened).toBe('made');
    lose('shop/b', 'Activation');
    const made = create('shop/e', 'Activation');
    await settle();
    see('shop/e', 'Activation', OPEN);
    expect(await made).toBe('made');
  });
});
