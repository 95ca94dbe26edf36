import { describe, expect, test } from 'vitest';
import type { KindName } from '../../../api/kinds/kinds.ts';
import { createHeaderSeals } from '../../../core/delivery/header-seal.ts';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { subscribe } from './subscribe.ts';

type Objects = { readonly [K in KindName]?: readonly object[] };

const object = <S extends object>(name: string, namespace: string, spec: S) => ({
  metadata: { name, namespace, uid: name },
  spec,
});
const grant = object('ada', 'shop', { workspace: 'ada' });
const orders = object('orders', 'shop', { public: true });
const block = object('kept', 'shop', { integration: 'ada', target: { kind: 'CatalogStream', name: 'orders' } });
const wholeBlock = object('all-kept', 'shop', { integration: 'ada', target: { kind: 'Package', name: 'all' } });
const all = object('all', 'shop', { streams: ['orders'] });
const existing = object('mine', 'ada', {
  producer: 'shop',
  integration: 'ada',
  stream: 'orders',
  ordering: 'ByGroupKey',
});
const integration = {
  producer: 'shop',
  name: 'ada',
  object: grant,
  recipient: { name: 'ada' },
} as unknown as OwnedIntegration;

/** Returns the value of a field such as `spec.target.name`. */
const fieldOf = (each: object, path: string): unknown =>
  path.split('.').reduce((value: unknown, key) => (value as Record<string, unknown>)[key], each);

/**
 * A facade whose caches contain `cached` while the API server contains `live`. `read` contains the number of objects of
 * each list on the API server.
 */
function start(cached: Objects, live: Objects) {
  const applied: object[] = [];
  const read: number[] = [];
  const of = (objects: Objects, kind: KindName) => (objects[kind] ?? []) as Cached<KindName>[];
  const facade = {
    wallMs: () => 0,
    headerSeals: createHeaderSeals(keyRingOf(new Uint8Array(32).fill(7)), () => 0),
    caches: {
      by: (kind: KindName) => of(cached, kind),
      list: (kind: KindName) => of(cached, kind),
      listLive: async (kind: KindName, _namespace: string, fields: Record<string, string> = {}) => {
        const found = of(live, kind).filter(each =>
          Object.entries(fields).every(([path, value]) => fieldOf(each, path) === value),
        );
        read.push(found.length);
        return found;
      },
      live: async (kind: KindName, { name }: { name: string }) =>
        of(live, kind).find(each => each.metadata.name === name),
    },
    writer: {
      edit: (attempt: () => Promise<unknown>) => attempt(),
      apply: async (_kind: KindName, name: object, wanted: object) => applied.push({ name, ...wanted }),
    },
  } as unknown as Facade;
  return { applied, read, call: (of = integration) => subscribe(facade, of, 'orders', {}) };
}

const open: Objects = { Integration: [grant], CatalogStream: [orders] };

test.each<[string, Objects, Objects?]>([
  ['a block', { Block: [block] }],
  ['a block of a package', { Block: [wholeBlock], Package: [all] }],
  ['a stream added to a package that is blocked', { Block: [wholeBlock], Package: [all] }, { Block: [wholeBlock] }],
])(
  '%s that is missing from the caches refuses a new subscription, and nothing is written',
  async (_what, live, cached = {}) => {
    const { applied, call } = start({ ...open, ...cached }, { ...open, ...live });
    await expect(call()).rejects.toMatchObject({ code: 'stream_blocked' });
    expect(applied).toEqual([]);
  },
);

test('a block that only the caches contain does not refuse anything', async () => {
  const fresh = start({ ...open, Block: [block] }, open);
  expect((await fresh.call()).made).toBe(true);
  const there = start({ ...open, Block: [block], Subscription: [existing] }, { ...open, Subscription: [existing] });
  expect(await there.call()).toEqual({ made: false, subscription: existing });
});

test.each([
  ['integration_not_active', { Integration: [object('ada', 'shop', { workspace: 'ada', revoked: true })] }],
  ['integration_not_active', { Integration: [object('ada', 'shop', { workspace: 'bob' })] }],
  ['integration_not_active', { Integration: [] }],
  ['stream_deprecated', { CatalogStream: [object('orders', 'shop', { public: false })] }],
  ['unknown_resource', { CatalogStream: [] }],
])('%s by the API server, regardless of the caches', async (code, live) => {
  const { applied, call } = start(open, { ...open, ...live });
  await expect(call()).rejects.toMatchObject({ code });
  expect(applied).toEqual([]);
});

test('returns the oldest of several subscriptions to the same stream because only this one receives events', async () => {
  const at = (name: string, creationTimestamp: string) => ({
    ...existing,
    metadata: { ...existing.metadata, name, uid: name, creationTimestamp },
  });
  const oldest = at('c', '2026-01-01T00:00:00Z');
  const there = { ...open, Subscription: [at('b', '2026-01-02T00:00:00Z'), oldest, at('a', '2026-01-03T00:00:00Z')] };
  expect(await start(there, there).call()).toEqual({ made: false, subscription: oldest });
});

test('refuses an existing subscription while it is blocked', async () => {
  const objects = { ...open, Block: [block], Subscription: [existing] };
  await expect(start(objects, objects).call()).rejects.toMatchObject({ code: 'stream_blocked' });
});

test('refuses an existing subscription if the API server, and not only the cache, says that its integration has ended', async () => {
  const ended = object('ada', 'shop', { workspace: 'ada', revoked: true }) as OwnedIntegration['object'];
  const of = { ...integration, object: ended };
  const there = { ...open, Subscription: [existing] };
  expect((await start(there, there).call(of)).made).toBe(false);
  const live = { ...there, Integration: [ended] };
  await expect(start(there, live).call(of)).rejects.toMatchObject({ code: 'integration_not_active' });
});

describe('with thousands of Blocks and Packages of the producer', () => {
  const many = Array.from({ length: 3_000 }, (_, i) => i);
  const busy = (...blocks: object[]): Objects => ({
    ...open,
    Block: [
      ...many.map(i =>
        object(`b${i}`, 'shop', { integration: 'bob', target: { kind: 'CatalogStream', name: 'orders' } }),
      ),
      ...many.map(i =>
        object(`c${i}`, 'shop', { integration: 'ada', target: { kind: 'CatalogStream', name: `s${i}` } }),
      ),
      ...blocks,
    ],
    Package: [all, ...many.map(i => object(`p${i}`, 'shop', { streams: ['orders'] }))],
  });

  test('subscribing only reads the objects for this integration and this stream', async () => {
    const { call, read } = start(open, busy());
    expect((await call()).made).toBe(true);
    expect(read).toEqual([0, 0]);
  });

  test.each<[string, object, number[]]>([
    ['a block of the stream', block, [1, 0]],
    ['a block of a package', wholeBlock, [0, 1]],
  ])('%s that is missing from the caches is found without reading the others', async (_what, own, most) => {
    const { call, read } = start(open, busy(own));
    await expect(call()).rejects.toMatchObject({ code: 'stream_blocked' });
    expect(read).toEqual(most);
  });

  test.each([
    ['a block of the stream', block],
    ['a block of a package', wholeBlock],
  ])('%s that the caches contain is confirmed without a list', async (_what, own) => {
    const { call, read } = start({ ...open, Block: [own], Package: [all] }, busy(own));
    await expect(call()).rejects.toMatchObject({ code: 'stream_blocked' });
    expect(read).toEqual([]);
  });

  test('many blocked packages require one list of packages instead of a read for each', async () => {
    const blocks = many
      .slice(0, 100)
      .map(i => object(`w${i}`, 'shop', { integration: 'ada', target: { kind: 'Package', name: `p${i}` } }));
    const { call, read } = start(open, busy(...blocks));
    await expect(call()).rejects.toMatchObject({ code: 'stream_blocked' });
    expect(read).toEqual([0, 100, 3_001]);
  });
});

test.each<[string, object, Objects]>([
  ['a block of a package that no longer contains the stream', wholeBlock, { Package: [object('all', 'shop', {})] }],
  [
    'a block that was replaced by another of the same name',
    block,
    { Block: [{ metadata: { ...block.metadata, uid: 'new' }, spec: { ...block.spec, integration: 'bob' } }] },
  ],
])('%s does not refuse anything', async (_what, own, live) => {
  const { call } = start({ ...open, Block: [own], Package: [all] }, { ...open, Block: [own], ...live });
  expect((await call()).made).toBe(true);
});
