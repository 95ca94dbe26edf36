import { expect, test } from 'vitest';
import type { Route } from '../contract/route.ts';
import type { Facade } from '../objects/facade.ts';
import { INTEGRATION_ROUTES } from './integrations/integrations.ts';
import { PACKAGE_ROUTES } from './packages/packages.ts';
import { STREAM_ROUTES } from './streams/streams.ts';
import { PARTNER_CATALOG_ROUTES } from './subscriptions/partner-catalog.ts';
import { SUBSCRIPTION_ROUTES } from './subscriptions/subscriptions.ts';

const ROUTES = [
  ...STREAM_ROUTES,
  ...PACKAGE_ROUTES,
  ...INTEGRATION_ROUTES,
  ...PARTNER_CATALOG_ROUTES,
  ...SUBSCRIPTION_ROUTES,
];

interface Stored {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: object;
}

function object(name: string, spec: object, { namespace = 'shop', ...more }: { namespace?: string } & object = {}) {
  return { metadata: { name, namespace, uid: name, ...more }, spec };
}

const LEAVING = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const GRANT = { workspace: 'ada' };
const subscriptionTo = (stream: string) => ({ producer: 'shop', integration: 'ada', stream });

const OBJECTS: Readonly<Record<string, readonly Stored[]>> = {
  CatalogStream: [
    object('orders', { public: true }),
    object('old', {}),
    object('subscribed', {}),
    object('leaving', { public: true }, LEAVING),
  ],
  Package: [object('basics', {}), object('archived', { archived: true }), object('leaving', {}, LEAVING)],
  Integration: [
    object('ada', GRANT),
    object('invited', { invitedEmail: 'bob@example.com' }),
    object('leaving', GRANT, LEAVING),
  ],
  Subscription: [
    object('subscribed', subscriptionTo('subscribed'), { namespace: 'ada' }),
    object('leaving', subscriptionTo('old'), { namespace: 'ada', ...LEAVING }),
    object('ungranted', subscriptionTo('old'), { namespace: 'eve' }),
  ],
};

const read = (kind: string) => OBJECTS[kind] ?? [];

interface Page {
  readonly data: readonly Record<string, unknown>[];
  readonly nextCursor: string | null;
}

/** Calls a list of a workspace or an integration, and returns a page. All objects are in the caches. */
async function page(operation: string, query: object, of = 'shop'): Promise<Page> {
  const route = ROUTES.find(each => each.operation === operation);
  const facade = {
    caches: { list: read, by: read, get: () => undefined },
    wallMs: () => 0,
  } as unknown as Facade;
  const workspace = object('shop', { account: 'shop' });
  const call = {
    tenant: { name: of, publicId: 'ten_1', workspace },
    integration: {
      publicId: `int_${of}`,
      producer: 'shop',
      name: 'ada',
      object: object('ada', GRANT),
      recipient: { name: 'ada' },
    },
    query,
  } as unknown as Parameters<Route['handle']>[1];
  const { body } = (await route?.handle(facade, call)) ?? {};
  return body as Page;
}

test.each<[operation: string, query: object, field: string, expected: readonly string[]]>([
  ['listCatalog', {}, 'key', ['orders']],
  ['listCatalog', { status: 'Deprecated' }, 'key', ['old', 'subscribed']],
  ['listCatalog', { status: 'all' }, 'key', ['old', 'orders', 'subscribed']],
  ['listPackages', {}, 'key', ['basics']],
  ['listPackages', { status: 'Archived' }, 'key', ['archived']],
  ['listPackages', { status: 'all' }, 'key', ['archived', 'basics']],
  ['listIntegrations', {}, 'name', ['ada', 'invited']],
  ['listIntegrations', { status: 'Pending' }, 'name', ['invited']],
  ['listPartnerCatalog', {}, 'key', ['orders', 'subscribed']],
  ['listSubscriptions', {}, 'key', ['subscribed']],
])('%s %j does not include objects that are being deleted', async (operation, query, field, expected) => {
  expect((await page(operation, query)).data.map(entry => entry[field])).toEqual(expected);
});

test.each([
  ['listCatalog', { status: 'all' }],
  ['listPackages', { status: 'all' }],
  ['listIntegrations', {}],
  ['listPartnerCatalog', {}],
])('%s refuses the cursors of other lists', async (operation, query) => {
  const { nextCursor: cursor } = await page(operation, { ...query, limit: 1 });
  expect((await page(operation, { ...query, cursor })).data.length).toBeGreaterThan(0);
  const refused = { code: 'malformed_cursor' };
  await expect(page(operation, { ...query, cursor }, 'other')).rejects.toMatchObject(refused);
  const another = operation === 'listPackages' ? 'listCatalog' : 'listPackages';
  await expect(page(another, { cursor })).rejects.toMatchObject(refused);
});
