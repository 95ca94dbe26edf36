import { expect, test } from 'vitest';
import type { KindName } from '../../../api/kinds/kinds.ts';
import { createHeaderSeals } from '../../../core/delivery/header-seal.ts';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';
import { subscribe } from './subscribe.ts';

type Objects = { readonly [K in KindName]?: readonly object[] };

const object = (name: string, namespace: string, spec: object) => ({ metadata: { name, namespace, uid: name }, spec });
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
const integration = { producer: 'shop', name: 'ada', object: grant, recipient: { name: 'ada' } } as OwnedIntegration;

/** A facade whose caches contain `cached`, while the API server contains `live`. */
function start(cached: Objects, live: Objects) {
  const applied: object[] = [];
  const of = (objects: Objects, kind: KindName) => (objects[kind] ?? []) as Cached<KindName>[];
  const facade = {
    wallMs: () => 0,
    headerSeals: createHeaderSeals(keyRingOf(new Uint8Array(32).fill(7)), () => 0),
    caches: {
      by: (kind: KindName) => of(cached, kind),
      list: (kind: KindName) => of(cached, kind),
      listLive: async (kind: KindName) => of(live, kind),
      live: async (kind: KindName, { name }: { name: string }) =>
        of(live, kind).find(each => each.metadata.name === name),
    },
    writer: {
      edit: (attempt: () => Promise<unknown>) => attempt(),
      apply: async (_kind: KindName, name: object, wanted: object) => applied.push({ name, ...wanted }),
    },
  } as unknown as Facade;
  return { applied, call: (of = integration) => subscribe(facade, of, 'orders', {}) };
}

const open: Objects = { Integration: [grant], CatalogStream: [orders] };

test.each<[string, Objects, Objects?]>([
  ['a block', { Block: [block] }],
  ['a block of a package', { Block: [wholeBlock], Package: [all] }],
  ['a stream added to a package that is blocked', { Block: [wholeBlock], Package: [all] }, { Block: [wholeBlock] }],
])(
  '%s that the caches have not heard of refuses a new subscription, and nothing is written',
  async (_what, live, cached = {}) => {
    const { applied, call } = start({ ...open, ...cached }, { ...open, ...live });
    await expect(call()).rejects.toMatchObject({ code: 'stream_blocked' });
    expect(applied).toEqual([]);
  },
);

test('a block that only the caches still have refuses nothing', async () => {
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
])('%s by the API server, whatever the caches have', async (code, live) => {
  const { applied, call } = start(open, { ...open, ...live });
  await expect(call()).rejects.toMatchObject({ code });
  expect(applied).toEqual([]);
});

test('refuses an existing subscription while it is blocked', async () => {
  const objects = { ...open, Block: [block], Subscription: [existing] };
  await expect(start(objects, objects).call()).rejects.toMatchObject({ code: 'stream_blocked' });
});

test('an existing one is refused when its integration has ended, not when only the cache has it', async () => {
  const ended = object('ada', 'shop', { workspace: 'ada', revoked: true }) as OwnedIntegration['object'];
  const of = { ...integration, object: ended };
  const there = { ...open, Subscription: [existing] };
  expect((await start(there, there).call(of)).made).toBe(false);
  const live = { ...there, Integration: [ended] };
  await expect(start(there, live).call(of)).rejects.toMatchObject({ code: 'integration_not_active' });
});
