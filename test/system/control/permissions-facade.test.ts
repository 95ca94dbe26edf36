import { afterAll, beforeAll, expect, test } from 'vitest';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from '../rest/support/facade-world.ts';
import type { Reply, RestClient } from '../support/rest-client.ts';
import { kubectl } from '../support/world.ts';

// All writes use a facade with the shipped permissions, and a controller with the shipped permissions reconciles them.
let world: FacadeWorld;
let facade: Sluice;
let ada: RestClient;
let bob: RestClient;
let shop: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  const { cluster } = world.installation;
  await applyPermissions(cluster);
  const [controller, own] = await Promise.all(
    ['sluice-controller', 'sluice-facade'].map(name => kubeconfigOf(cluster, name)),
  );
  await world.start({ role: 'controller', kubeconfig: controller as string });
  facade = await world.start({ role: 'facade', kubeconfig: own as string });
  ({ shop = '' } = await makeTenants(world, { shop: 'ada' }));
  [ada, bob] = await Promise.all([world.as(facade, 'ada'), world.as(facade, 'bob')]);
});
afterAll(() => world?.stop());

type Found = { readonly publicId: string };

/** @throws with the whole response if the status is different */
function expectStatus({ status, body }: Reply, expected: number): void {
  expect(status, JSON.stringify(body)).toBe(expected);
}

test('a producer enables itself, publishes, creates packages, and creates and deletes keys', async () => {
  expectStatus(await ada.post('/waas/enable-producer', { producerTenantPublicId: shop }), 200);
  const stream = { producerTenantPublicId: shop, name: 'orders', isPublic: true };
  const published = await ada.put<Found>('/waas/streams', stream);
  expectStatus(published, 200);
  const made = await ada.post<Found>(`/waas/producer/${shop}/packages`, { name: 'basics' });
  expectStatus(made, 201);
  const path = `/waas/producer/${shop}/packages/${made.body.publicId}`;
  expectStatus(await ada.post(`${path}/streams`, { catalogEntryPublicId: published.body.publicId }), 204);
  expectStatus(await ada.put(path, { name: 'all' }), 200);
  expectStatus(await ada.post(`${path}/archive`), 204);
  expectStatus(await ada.post(`/waas/producer/${shop}/ingress-keys`, { id: 'first' }), 201);
  expectStatus(await ada.remove(`/waas/producer/${shop}/ingress-keys/first`), 204);
});

test('a partner is invited and accepts, which creates a free account and a workspace', async () => {
  const invitation = { producerTenantPublicId: shop, email: 'bob@example.com' };
  const invited = await ada.post<Found>('/waas/integrations', invitation);
  expectStatus(invited, 201);
  const { cluster } = world.installation;
  const secrets = ['-n', 'shop', '--field-selector=type=sluice.dev/invitation'];
  const written = ['--for=condition=InvitationSent', 'integrations', '--all', '-n', 'shop', '--timeout=120s'];
  await kubectl(cluster, ['wait', ...written]);
  const token = await kubectl(cluster, ['get', 'secrets', ...secrets, '-o', 'jsonpath={.items[0].data.token}']);
  const accepting = { token: Buffer.from(token, 'base64').toString() };
  expectStatus(await bob.post('/waas/invitations/accept', accepting), 200);
  // The invitation is accepted by the same owner. The existing account must not be changed.
  expectStatus(await bob.post('/waas/invitations/accept', accepting), 200);
  const plans = await kubectl(cluster, ['get', 'accounts', '-o', 'jsonpath={.items[*].spec.plan}']);
  expect(plans.split(' ').toSorted()).toEqual(['Free', 'Metered']);
});

test('group keys are opened and closed, streams are blocked and unblocked, and the integration ends', async () => {
  const { body } = await ada.get<{ data: Found[] }>(`/waas/producer/${shop}/integrations`);
  const integration = body.data[0]?.publicId ?? '';
  const pair = { producerTenantPublicId: shop, groupKey: 'customer-1', integrationPublicId: integration };
  expectStatus(await ada.post('/waas/activations', pair), 200);
  expectStatus(await ada.remove('/waas/activations', pair), 204);
  const catalog = await ada.get<{ data: Found[] }>(`/waas/producer/${shop}/catalog`);
  const path = `/waas/producer/${shop}/integrations/${integration}`;
  const block = `${path}/blocks/streams/${catalog.body.data[0]?.publicId}`;
  expectStatus(await ada.post(block), 204);
  expectStatus(await ada.remove(block), 204);
  expectStatus(await ada.post(`${path}/revoke`), 204);
});

test('the API server does not refuse any request', async () => {
  const lines = (await facade.logLines()).map(line => JSON.stringify(line));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter(line => /cannot \w+ resource|ValidatingAdmissionPolicy/.test(line))).toEqual([]);
});
