import { expect, test } from 'vitest';
import type { Refusal } from '../../http/refusal.ts';
import type { Route } from '../contract/route.ts';
import type { Facade } from '../objects/facade.ts';
import { ROUTES } from '../routes.ts';

/** A facade without any objects. */
const facade = {
  caches: { by: () => [], get: () => undefined, live: async () => undefined, find: async () => undefined },
  replays: { read: async () => undefined },
  writer: { edit: (attempt: () => unknown) => attempt() },
  wallMs: () => 0,
} as unknown as Facade;
const tenant = { name: 'shop' };
const recipient = { name: 'ada', workspace: { spec: { account: 'ada' } } };
const integration = { producer: 'shop', name: 'ada', object: { spec: { workspace: 'ada' } }, recipient };
const params = { activation: 'act_1', pkg: 'pkg_1', catalogEntryPublicId: 'cat_1', integration: 'int_1' };

test.each([
  ['getActivation', 'Check the id.'],
  ['getPackage', 'Check the id.'],
  ['getCatalogEntry', 'Check the id.'],
  ['getIntegration', 'Check the id.'],
  ['getSubscription', 'Check the id.'],
  ['changeSubscription', 'Check the id.'],
  ['getReplay', 'Check the id,'],
])('%s says what to change if the id is unknown', async (operation, remedy) => {
  const route = ROUTES.find(each => each.operation === operation) as Route;
  const call = { tenant, integration, params, body: {} } as unknown as Parameters<Route['handle']>[1];
  const refused = (await route.handle(facade, call).catch((error: unknown) => error)) as Refusal;
  expect(refused.code).toBe('unknown_resource');
  expect(refused.message).toContain(remedy);
});
