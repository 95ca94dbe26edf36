import { expect, test } from 'vitest';
import { publicId } from '../../core/ids/ids.ts';
import { createStore } from '../../kube/store.ts';
import { INDEXES, publicIdOf } from '../caches/indexes.ts';
import type { Route } from '../contract/route.ts';
import { gateOfObjects } from '../objects/gate-of-objects.ts';
import { ACTIVATION_ROUTES } from './activations/activations.ts';
import { BLOCK_ROUTES } from './blocks/blocks.ts';
import { PULL_ROUTES } from './inbox/pulling.ts';
import { coveringInCaches } from './subscriptions/live-coverage.ts';
import { PARTNER_CATALOG_ROUTES } from './subscriptions/partner-catalog.ts';
import { ACCOUNT_ROUTES } from './workspaces/accounts.ts';
import { WORKSPACE_ROUTES } from './workspaces/workspaces.ts';

/**
 * A workspace can have hundreds of thousands of objects, so a call about a single integration must not read all of
 * them. It would stop the facade for everybody.
 */

const ROUTES = [...ACTIVATION_ROUTES, ...BLOCK_ROUTES, ...PULL_ROUTES, ...PARTNER_CATALOG_ROUTES];
const MANY = 500;
const ADA = publicId('Integration', 'shop', 'ada');
const GONE = publicId('Integration', 'shop', 'gone');
const FOREIGN = publicId('Integration', 'other', 'ada');
const ORDERS = publicId('CatalogStream', 'shop', 'orders');

const object = (name: string, spec: object, namespace = 'shop') => ({
  metadata: { name, namespace, uid: name },
  spec,
});
const blockOf = (integration: string, name: string, kind = 'CatalogStream', namespace = 'shop') =>
  object(`${integration}-${kind}-${name}`, { integration, target: { kind, name } }, namespace);
const subscription = object('sub', { producer: 'shop', integration: 'ada', stream: 'orders' }, 'ada');

const OBJECTS = {
  Activation: [
    ...Array.from({ length: MANY }, (_, n) => object(`act-${n}`, { integration: `int-${n}`, groupKey: 'red' })),
    object('act', { integration: 'gone', groupKey: 'red' }),
    object('act', { integration: 'ada', groupKey: 'red' }, 'other'),
  ],
  Block: [
    ...Array.from({ length: MANY }, (_, n) => blockOf(`int-${n}`, 'orders')),
    blockOf('gone', 'orders'),
    blockOf('ada', 'basics', 'Package'),
    blockOf('ada', 'orders', 'CatalogStream', 'other'),
  ],
  Package: [
    ...Array.from({ length: MANY }, (_, n) => object(`pkg-${n}`, { streams: ['visits'] })),
    object('basics', { streams: ['orders'] }),
  ],
  CatalogStream: [object('orders', { public: true }), object('visits', { public: true })],
  Integration: [object('ada', { workspace: 'ada' })],
  Subscription: [subscription],
};
type Kind = keyof typeof OBJECTS;

function createStores(objects: Readonly<Record<Kind, readonly ReturnType<typeof object>[]>>) {
  return Object.fromEntries(
    Object.entries(objects).map(([kind, each]) => {
      const store = createStore(INDEXES[kind as Kind] as never);
      for (const one of each) store.set(`${one.metadata.namespace}/${one.metadata.name}`, one as never);
      return [kind, store];
    }),
  ) as Record<Kind, ReturnType<typeof createStore<object>>>;
}

/** Makes a call. Returns its result, the objects that were read from the caches, and the names of live reads. */
async function make(operation: string, params: object, body: object = {}) {
  let read = 0;
  const live: string[] = [];
  const stores = createStores(OBJECTS);
  const by = (kind: Kind, index: string, value: string) => {
    const found = stores[kind].byIndex(index, value);
    read += found.length;
    return found;
  };
  const facade = {
    wallMs: () => 0,
    clock: { nowMs: () => 0 },
    gates: { isClosed: async () => true },
    operations: { pull: async () => ({ answer: 'PAUSED' }) },
    caches: {
      by,
      list: (kind: Kind, namespace: string) => by(kind, 'namespace', namespace),
      get: (kind: Kind, { namespace, name }: { namespace: string; name: string }) => {
        read++;
        return stores[kind].get(`${namespace}/${name}`);
      },
      find: async (kind: Kind, id: string) => stores[kind].byIndex('publicId', id)[0],
      live: async (_kind: Kind, { name }: { name: string }) => void live.push(name),
    },
    writer: { edit: (attempt: () => Promise<unknown>) => attempt(), apply: async () => undefined },
  };
  const call = {
    tenant: { name: 'shop', publicId: 'ten_1' },
    integration: {
      producer: 'shop',
      name: 'ada',
      publicId: ADA,
      object: OBJECTS.Integration[0],
      recipient: { name: 'ada' },
    },
    params,
    body,
    query: {},
    waitFor: (_seconds: number, ask: () => Promise<unknown>) => ask(),
  } as unknown as Parameters<Route['handle']>[1];
  const route = ROUTES.find(each => each.operation === operation);
  const result = await route?.handle(facade as never, call).catch((error: unknown) => error);
  return { result, read, live };
}

const pair = (integrationPublicId: string) => ({
  producerTenantPublicId: 'ten_1',
  integrationPublicId,
  groupKey: 'red',
});

test.each<[what: string, operation: string, params: object, body: object, result: object]>([
  [
    'unblocks a deleted integration',
    'unblockStream',
    { integration: GONE, catalogEntryPublicId: ORDERS },
    {},
    { status: 204 },
  ],
  [
    'unblocks an unknown stream',
    'unblockStream',
    { integration: ADA, catalogEntryPublicId: 'cat_1' },
    {},
    { status: 204 },
  ],
  ['closes a key of a deleted integration', 'deactivate', {}, pair(GONE), { status: 204 }],
  ['lists the blocks', 'listBlocks', { integration: ADA }, {}, { status: 200, body: { data: [{ key: 'basics' }] } }],
  [
    'lists the catalog',
    'listPartnerCatalog',
    {},
    {},
    {
      status: 200,
      body: {
        data: [
          { key: 'orders', blocked: true },
          { key: 'visits', blocked: false },
        ],
      },
    },
  ],
  [
    'pulls events of a paused subscription',
    'pullEvents',
    {},
    { subscription: publicId('Subscription', 'ada', 'sub') },
    { code: 'stream_blocked' },
  ],
])('a call that %s only reads the objects of its integration', async (_what, operation, params, body, expected) => {
  const { result, read } = await make(operation, params, body);
  expect(result).toMatchObject(expected);
  expect(read).toBeLessThan(20);
});

test('the objects of a deleted integration are found by its id, and those of other workspaces are not', async () => {
  const own = await make('unblockStream', { integration: GONE, catalogEntryPublicId: ORDERS });
  expect(own.result).toMatchObject({ about: { kind: 'Block' } });
  expect(own.live).toHaveLength(2);
  const foreign = await make('unblockStream', { integration: FOREIGN, catalogEntryPublicId: ORDERS });
  expect(foreign.result).toEqual({ status: 204 });
  expect((await make('deactivate', {}, pair(GONE))).live).toHaveLength(2);
  expect((await make('deactivate', {}, pair(FOREIGN))).live).toEqual([]);
});

test.each([
  ['listWorkspaces', WORKSPACE_ROUTES],
  ['listAccounts', ACCOUNT_ROUTES],
])('%s only creates the entries of a page', async (operation, routes) => {
  let created = 0;
  const objects = Array.from({ length: MANY }, (_, n) => ({
    metadata: { name: `w-${n}` },
    spec: {
      owners: [{ issuer: 'i', subject: 'ada' }],
      account: `w-${n}`,
      get displayName() {
        return void created++;
      },
    },
    get status() {
      return void created++;
    },
  }));
  const of = operation === 'listAccounts' ? 'Account' : 'Workspace';
  const caches = { by: (kind: string) => (kind === of ? objects : []), get: () => undefined };
  const identity = { issuer: 'i', subject: 'ada', groups: [] };
  const call = { identity, query: { limit: 10 } } as unknown as Parameters<Route['handle']>[1];
  const route = (routes as readonly Route[]).find(each => each.operation === operation);
  const { body } = (await route?.handle({ caches } as never, call)) ?? {};
  expect(body).toMatchObject({ data: { length: 10 }, nextCursor: expect.any(String) });
  expect(created).toBe(10);
});

test('the id of a cached object is only derived once', () => {
  let read = 0;
  const metadata = {
    namespace: 'shop',
    get name() {
      read++;
      return 'ada';
    },
  };
  const integration = { metadata, spec: {} } as never;
  expect([publicIdOf('Integration', integration), publicIdOf('Integration', integration), read]).toEqual([ADA, ADA, 1]);
});

test.each<[what: string, covers: (caches: never, integration: never, stream: never) => boolean]>([
  [
    'the gate',
    (caches, integration, stream) => {
      const question = { tenant: { name: 'shop', workspace: object('shop', {}) }, stream, integration, nowMs: 0 };
      return gateOfObjects(caches, question as never).subscription === 'blocked_package';
    },
  ],
  [
    'the Blocks that cover a stream',
    caches => coveringInCaches({ caches }, { producer: 'shop', name: 'ada' }, 'orders').length === 1,
  ],
])('%s can be found without the streams of the packages that contain the stream', (_what, covers) => {
  let read = 0;
  const packages = Array.from({ length: MANY }, (_, n) =>
    object(`pkg-${n}`, {
      get streams() {
        read++;
        return ['orders'];
      },
    }),
  );
  const subscribed = { ...subscription, status: { publicId: 'sub_1' } };
  const stream = { ...object('orders', { public: true }), status: { publicId: 'cat_1' } };
  const objects = {
    ...OBJECTS,
    Package: packages,
    Block: [blockOf('ada', 'pkg-7', 'Package'), blockOf('ada', 'other', 'Package'), blockOf('bob', 'pkg-8', 'Package')],
    Subscription: [subscribed],
  };
  const stores = createStores(objects);
  const caches = { by: (kind: Kind, index: string, value: string) => stores[kind].byIndex(index, value) };
  read = 0;
  expect(covers(caches as never, object('ada', { workspace: 'ada' }) as never, stream as never)).toBe(true);
  expect(read).toBeLessThan(20);
});
