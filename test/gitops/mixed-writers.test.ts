import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_VERSION } from '../../src/api/group-version.ts';
import { publicId, tenantId } from '../../src/core/ids/ids.ts';
import { activationObjectName, subscriptionObjectName } from '../../src/core/ids/object-names.ts';
import { explain, healthOf, readApplication } from '../support/argocd/application.ts';
import { applyDefinitions } from '../support/kubernetes/crds.ts';
import { applyPermissions, kubeconfigOf } from '../support/kubernetes/permissions.ts';
import { ownersOf } from '../system/control/field-ownership.ts';
import { eventually } from '../system/support/deadline.ts';
import type { Problem, Reply, RestClient } from '../system/support/rest-client.ts';
import {
  activation,
  integration,
  kubectl,
  type Manifest,
  pkg,
  stream,
  subscription,
  tenant,
} from '../system/support/world.ts';
import { observeQuiet } from './quiet.ts';
import { type GitOpsWorld, openGitOpsWorld, ROOT } from './world.ts';

const ARGOCD = 'argocd-controller';
/** The time during which nothing may be written after everything was applied, in milliseconds. */
const QUIET_MS = Number(process.env['IDLE_MINUTES'] || 3) * 60_000;
const FILE = 'shop/objects.yaml';

let world: GitOpsWorld;
let owner: RestClient;
let ada: RestClient;
let carol: RestClient;

const shop = tenantId('shop');
const cat = (name: string) => publicId('CatalogStream', 'shop', name);
const grantee = publicId('Integration', 'shop', 'ada');
const packageOf = (name: string) => `/waas/producer/${shop}/packages/${publicId('Package', 'shop', name)}`;

function manifest(kind: string, name: string, spec: object): Manifest {
  return { apiVersion: API_VERSION, kind, metadata: { name, namespace: 'shop' }, spec };
}

/** Returns an Activation with the same name that REST uses. */
const activationOfRest = (groupKey: string, spec: object = {}) =>
  manifest('Activation', activationObjectName('shop', 'ada', groupKey), { integration: 'ada', groupKey, ...spec });

/** The workspaces in Git: a producer and a partner. Their owners also change them using REST. */
function objectsOfGit(): Manifest[] {
  const owned = (name: string, subject: string) =>
    tenant(name, {
      plan: 'Metered',
      owners: [{ issuer: world.issuer.url, subject, role: 'Owner' }],
      limits: { streams: 5 },
    });
  return [
    // Argo CD creates the namespace of the Application.
    ...owned('shop', 'owner').filter(({ kind }) => kind !== 'Namespace'),
    ...owned('ada', 'ada'),
    ...['carts', 'orders', 'stock'].map(name => stream('shop', name, { description: 'of Git' })),
    integration('shop', 'ada'),
    manifest('Integration', 'invited', { invitedEmail: 'carol@example.com' }),
    manifest('Package', 'open', { displayName: 'Streams by REST' }),
    pkg('shop', 'fixed', ['orders']),
    activation('shop', 'ada', 'of-git'),
    activationOfRest('shared'),
    activationOfRest('said', { revoked: false }),
    subscription('ada', 'shop', 'orders', undefined),
  ];
}

/** Objects that are created using REST and added to Git later. */
const RETURNS = stream('shop', 'returns', { description: 'of Git' });

const sync = (...more: readonly Manifest[]) => world.sync('shop', FILE, [...objectsOfGit(), ...more]);

/** Reads an object with its managed fields. */
async function read(kind: string, name: string, namespace = 'shop') {
  const args = ['get', kind, name, '-n', namespace, '--show-managed-fields', '-o', 'json'];
  return JSON.parse(await kubectl(world.cluster, args)) as Parameters<typeof ownersOf>[0] & {
    readonly spec: Readonly<Record<string, unknown>>;
    readonly status?: Readonly<Record<string, unknown>>;
  };
}

async function succeed<T>(call: Promise<Reply<T>>): Promise<T> {
  const { status, body } = await call;
  expect([200, 201, 204], JSON.stringify(body)).toContain(status);
  return body;
}

/** Expects that Argo CD is named as the reason for a refusal. */
async function refusedForGit(call: Promise<Reply>, code: string): Promise<void> {
  const { status, body } = (await call) as Problem;
  expect([status, body.code], JSON.stringify(body)).toEqual([409, code]);
  expect(body.detail).toContain(ARGOCD);
}

beforeAll(async () => {
  world = await openGitOpsWorld();
  await applyDefinitions(world.cluster.kubeconfig, `${ROOT}/crds`);
  await applyPermissions(world.cluster);
  await world.startSluice({ role: 'controller', kubeconfig: await kubeconfigOf(world.cluster, 'sluice-controller') });
  const facade = await world.startSluice({
    role: 'facade',
    kubeconfig: await kubeconfigOf(world.cluster, 'sluice-facade'),
  });
  await world.follow('shop', { path: 'shop', namespace: 'shop' });
  await sync();
  [owner, ada, carol] = (await Promise.all(['owner', 'ada', 'carol'].map(sub => world.as(facade, sub)))) as [
    RestClient,
    RestClient,
    RestClient,
  ];
});

afterAll(() => world?.stop());

test('Argo CD reverts changes by kubectl to fields in Git', async () => {
  const description = async () => (await read('catalogstream', 'stock')).spec['description'];
  const patch = ['--type=merge', '--field-manager=kubectl-edit', '-p', '{"spec":{"description":"edited"}}'];
  await kubectl(world.cluster, ['patch', 'catalogstream', 'stock', '-n', 'shop', ...patch]);
  await eventually('Argo CD has reverted the change', async () => (await description()) === 'of Git');
});

test('REST accepts an invitation in Git', async () => {
  const path = ['-n', 'shop', '-o', 'jsonpath={.data.token}'];
  const secret = await kubectl(world.cluster, ['get', 'secret', 'invited-invitation', ...path]);
  await succeed(carol.post('/waas/invitations/accept', { token: Buffer.from(secret, 'base64').toString() }));
  expect((await read('integration', 'invited')).spec).toHaveProperty('workspace');
});

test('REST adds streams to a package in Git, unless Git lists them', async () => {
  await succeed(owner.post(`${packageOf('open')}/streams`, { catalogEntryPublicId: cat('carts') }));
  expect((await read('package', 'open')).spec).toMatchObject({ streams: ['carts'] });
  await refusedForGit(
    owner.post(`${packageOf('fixed')}/streams`, { catalogEntryPublicId: cat('carts') }),
    'field_managed',
  );
  expect((await read('package', 'fixed')).spec).toMatchObject({ streams: ['orders'] });
});

test('REST creates keys for a workspace in Git', async () => {
  await succeed(owner.post(`/waas/producer/${shop}/ingress-keys`, { id: 'by-rest' }));
  expect((await read('workspace', 'shop')).spec['ingressKeys']).toMatchObject([{ id: 'by-rest' }]);
});

test('REST deactivates a group key in Git, unless Git sets revoked to false', async () => {
  const pair = (groupKey: string) => ({ producerTenantPublicId: shop, groupKey, integrationPublicId: grantee });
  // The first group key gets a separate object, and the second uses the object in Git.
  for (const groupKey of ['of-git', 'shared']) {
    await succeed(owner.remove('/waas/activations', pair(groupKey)));
    const own = await read('activation', activationObjectName('shop', 'ada', groupKey));
    expect(own.spec).toMatchObject({ groupKey, revoked: true });
  }
  await refusedForGit(owner.remove('/waas/activations', pair('said')), 'field_managed');
});

test('REST cannot delete a subscription in Git', async () => {
  const path = `/waas/integrations/${grantee}/subscriptions/${publicId('Subscription', 'ada', 'shop-orders')}`;
  await refusedForGit(ada.remove(path), 'managed_elsewhere');
});

test('Git takes over a stream that was created using REST, by force', async () => {
  const put = (description: string) =>
    owner.put('/waas/streams', { producerTenantPublicId: shop, name: 'Returns', description, isPublic: true });
  await succeed(put('by REST'));
  await sync(RETURNS);
  const taken = await read('catalogstream', 'returns');
  expect(taken.spec).toMatchObject({ description: 'of Git' });
  expect(ownersOf(taken, 'description')).toEqual([ARGOCD]);
  await refusedForGit(put('by REST again'), 'field_managed');
});

test('Git takes over a subscription that was created using REST without changing its sealed header and its salt', async () => {
  const [name, url] = [subscriptionObjectName('shop', 'ada', 'stock'), 'http://127.0.0.1:9/hooks'];
  const subscriptions = `/waas/integrations/${grantee}/subscriptions`;
  const endpointOf = (to: string, value: string) => ({ url: to, headers: [{ name: 'authorization', value }] });
  const put = (to: string, value: string) =>
    ada.put(`${subscriptions}/${publicId('Subscription', 'ada', name)}`, { endpoint: endpointOf(to, value) });
  await succeed(
    ada.post(subscriptions, { catalogEntryPublicId: cat('stock'), endpoint: endpointOf(url, 'Bearer first') }),
  );
  const made = await read('subscription', name, 'ada');
  const ofGit = subscription('ada', 'shop', 'stock', { url });
  await sync(RETURNS, { ...ofGit, metadata: { ...ofGit.metadata, name } });
  const taken = await read('subscription', name, 'ada');
  expect(ownersOf(taken, 'endpoint › url')).toContain(ARGOCD);
  expect(taken.spec).toEqual(made.spec);
  expect(taken.status).toMatchObject({ signing: { salt: expect.stringMatching(/./) as unknown } });
  expect(taken.status).toMatchObject({ signing: made.status?.['signing'] as object });
  await succeed(put(url, 'Bearer second'));
  const { endpoint } = (await read('subscription', name, 'ada')).spec as {
    endpoint: { headers: readonly { valueSealed: string }[] };
  };
  expect(endpoint).toMatchObject({ url, headers: [{ valueSealed: expect.any(String) as unknown }] });
  expect(endpoint).not.toEqual(made.spec['endpoint']);
  await refusedForGit(put('http://127.0.0.1:9/elsewhere', 'Bearer second'), 'field_managed');
});

test('limits of an account in Git are in force, and REST cannot change its members', async () => {
  const path = `/waas/accounts/${publicId('Account', '', 'shop')}`;
  const { limits } = await succeed(
    owner.get<{ limits: Record<string, { limit: number; used: number }> }>(`${path}/limits`),
  );
  expect(limits['streams']).toMatchObject({ limit: 5, used: 4 });
  const members = [{ issuer: world.issuer.url, subject: 'owner', role: 'Owner' }];
  await refusedForGit(
    owner.put(`${path}/members`, { members: [...members, { ...members[0], subject: 'eve' }] }),
    'field_managed',
  );
});

test(
  `nothing is written for ${QUIET_MS / 60_000} minutes afterwards, and everything is Synced and Healthy`,
  async () => {
    const { before, after, writes, compared } = await observeQuiet(world.cluster, ['shop'], QUIET_MS);
    expect(after.versions).toEqual(before.versions);
    expect(after.syncs).toEqual(before.syncs);
    expect(writes).toEqual({});
    // Argo CD has compared the objects, and found no differences.
    expect(compared).toBeGreaterThan(0);
    const application = await readApplication(world.cluster, 'shop');
    expect([application?.status?.sync?.status, application?.status?.health?.status], explain(application)).toEqual([
      'Synced',
      'Healthy',
    ]);
    expect(new Set(Object.values(healthOf(application as never)))).toEqual(new Set(['Healthy']));
    expect((await read('integration', 'invited')).spec).toHaveProperty('workspace');
    expect((await read('package', 'open')).spec).toMatchObject({ streams: ['carts'] });
  },
  QUIET_MS + 120_000,
);
