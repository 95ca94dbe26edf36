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

/** Calls a list and returns its entries. All objects are in the caches. */
async function list(operation: string, query: object): Promise<readonly Record<string, unknown>[]> {
  const route = ROUTES.find(each => each.operation === operation);
  const facade = {
    caches: { list: read, by: read, get: () => undefined },
    wallMs: () => 0,
  } as unknown as Facade;
  const workspace = object('shop', { account: 'shop' });
  const call = {
    tenant: { name: 'shop', publicId: 'ten_1', workspace },
    integration: { producer: 'shop', name: 'ada', object: object('ada', GRANT), recipient: { name: 'ada' } },
    query,
  } as unknown as Parameters<Route['handle']>[1];
  const { body } = (await route?.handle(facade, call)) ?? {};
  return (body as { readonly data: readonly Record<string, unknown>[] }).data;
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
  expect((await list(operation, query)).map(entry => entry[field])).toEqual(expected);
});
