import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { createRestClient, type Problem, type Reply, type RestClient } from '../support/rest-client.ts';
import { apply, ingressKey, kubectl } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld, ownedTenant } from './support/facade-world.ts';

interface MadeKey {
  readonly id: string;
  readonly key: string;
  readonly expiresAt: string | null;
}

/** The time for which ingress caches a valid key, in milliseconds. */
const KEY_CACHE_MS = 5_000;

let world: FacadeWorld;
let ingress: Sluice;
let facade: Sluice;
let ada: RestClient;
let eve: RestClient;
let shop: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  const { cluster } = world.installation;
  await applyPermissions(cluster);
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-facade');
  [ingress, facade] = await Promise.all([world.start(), world.start({ role: 'facade', kubeconfig })]);
  ({ shop = '' } = await makeTenants(world, { shop: 'ada', other: 'eve' }));
  [ada, eve] = await Promise.all([world.as(facade, 'ada'), world.as(facade, 'eve')]);
  const { status } = await ada.put('/waas/streams', { producerTenantPublicId: shop, name: 'orders', isPublic: true });
  if (status !== 200) throw new Error(`the response for the stream was ${status}`);
});
afterAll(() => world?.stop());

const codeOf = ({ body }: Reply) => (body as Problem['body']).code;
const inCluster = (args: readonly string[], stdin?: string) => kubectl(world.installation.cluster, args, stdin);
const versionOf = (name: string) => inCluster(['get', 'workspace', name, '-o', 'jsonpath={.metadata.resourceVersion}']);
const keysPath = () => `/waas/producer/${shop}/ingress-keys`;
const makeKey = (body?: object) => ada.post<MadeKey>(keysPath(), body);
const removeKey = (id: string) => ada.remove(`${keysPath()}/${id}`);
const listKeys = async () =>
  expectDeclared('listIngressKeys', await ada.get<{ data: Omit<MadeKey, 'key'>[] }>(keysPath())).body.data;
async function publish(key: string): Promise<number> {
  const response = await fetch(`${ingress.ingressUrl}/events/${shop}/orders`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-sluice-group-key': 'g', 'webhook-id': randomUUID() },
    body: '{}',
  });
  await response.arrayBuffer();
  return response.status;
}
const applyAs = (manager: string, name: string, spec: object) =>
  inCluster(
    ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'],
    JSON.stringify({ apiVersion: 'sluice.dev/v1alpha1', kind: 'Workspace', metadata: { name }, spec }),
  );

test('a workspace becomes a producer, and remains a producer without another write', async () => {
  await apply(world.installation.cluster, ownedTenant(world.issuer, 'fresh', 'ada'));
  const fresh = publicId('Workspace', '', 'fresh');
  const enable = () => ada.post('/waas/enable-producer', { producerTenantPublicId: fresh });
  const first = expectDeclared('enableProducer', await enable());
  expect(first.body).toEqual({ publicId: fresh, producer: true });
  expect(await inCluster(['get', 'workspace', 'fresh', '-o', 'jsonpath={.status.producer}'])).toBe('true');
  const version = await versionOf('fresh');
  for (const _ of [1, 2, 3]) expect(await enable()).toMatchObject({ status: 200, body: first.body });
  expect(await versionOf('fresh')).toBe(version);
  const entry = expectDeclared('getWorkspace', await ada.get(`/waas/workspaces/${fresh}`));
  expect(entry.body).toMatchObject({ name: 'fresh', producer: true, role: 'Owner' });
});

test('the fields of a producer that Git manages are kept', async () => {
  await apply(world.installation.cluster, ownedTenant(world.issuer, 'git', 'ada'));
  await applyAs('argocd', 'git', { producer: false });
  const reply: Problem = await ada.post('/waas/enable-producer', {
    producerTenantPublicId: publicId('Workspace', '', 'git'),
  });
  expect(reply.status).toBe(409);
  expect(reply.body.code).toBe('field_managed');
  expect(reply.body.errors).toEqual([{ pointer: '/spec/producer', detail: 'spec.producer is managed by argocd' }]);
});

test('a key works when the call returns, is only returned once, and does not give access to /waas', async () => {
  const made = expectDeclared('createIngressKey', await makeKey({ id: 'first' }));
  expect(made.status).toBe(201);
  expect(made.body).toEqual({ id: 'first', expiresAt: null, key: expect.stringMatching(/^slk_[\w-]{43}$/) });
  expect(made.headers.get('location')).toBe(`${keysPath()}/first`);
  expect(made.headers.get('cache-control')).toBe('no-store');
  expect(await publish(made.body.key)).toBe(202);
  expect(await publish(`${made.body.key}x`)).toBe(401);
  const text = JSON.stringify(await listKeys());
  expect(text).toContain('"first"');
  expect(text).not.toMatch(/slk_|[0-9a-f]{64}/);
  expect(await inCluster(['get', 'workspace', 'shop', '-o', 'yaml'])).not.toContain(made.body.key);
  const again = await makeKey({ id: 'first' });
  expect([again.status, codeOf(again)]).toEqual([409, 'ingress_key_exists']);
  const asToken = await fetch(`${facade.facadeUrl}${keysPath()}`, {
    headers: { authorization: `Bearer ${made.body.key}`, 'x-api-key': made.body.key },
  });
  expect(asToken.status).toBe(401);
});

test('keys of REST and of other managers can be used together, and are only removed by their manager', async () => {
  const ours = (await makeKey({ id: 'ours' })).body;
  await applyAs('argocd', 'shop', { ingressKeys: [{ id: 'by-git', sha256: 'a'.repeat(64) }] });
  await inCluster(['apply', '--server-side', '-f', '-'], JSON.stringify(ingressKey('shop', 'a-key-out-of-a-secret')));
  const second = (await makeKey()).body;
  expect(second.id).toMatch(/^key-[0-9a-z]{10}$/);
  expect((await listKeys()).map(({ id }) => id)).toEqual(expect.arrayContaining(['by-git', 'ours', second.id]));
  for (const { key } of [ours, second]) expect(await publish(key)).toBe(202);
  await eventually('the key of the Secret works', async () => (await publish('a-key-out-of-a-secret')) === 202);

  const refused = await removeKey('by-git');
  expect([refused.status, codeOf(refused)]).toEqual([409, 'field_managed']);
  expect(JSON.stringify(refused.body)).toContain('argocd');

  expectDeclared('deleteIngressKey', await removeKey('ours'));
  const version = await versionOf('shop');
  for (const _ of [1, 2, 3]) expect((await removeKey('ours')).status).toBe(204);
  expect((await removeKey('never-there')).status).toBe(204);
  expect(await versionOf('shop')).toBe(version);
  await eventually('the deleted key does not work', async () => (await publish(ours.key)) === 401, {
    withinMs: KEY_CACHE_MS,
  });
  expect(await publish(second.key)).toBe(202);
  expect((await listKeys()).map(({ id }) => id)).toContain('by-git');
});

test('the last key of REST can be removed, and keys of Git are kept', async () => {
  for (const { id } of await listKeys()) if (id !== 'by-git') expect((await removeKey(id)).status).toBe(204);
  expect((await listKeys()).map(({ id }) => id)).toEqual(['by-git']);
  const { key } = (await makeKey({ id: 'after-none' })).body;
  expect(await publish(key)).toBe(202);
});

test('a key expires at its time', async () => {
  const soon = new Date(Date.now() + 20_000).toISOString();
  const { status, body } = expectDeclared('createIngressKey', await makeKey({ id: 'short', expiresAt: soon }));
  expect([status, body.expiresAt]).toEqual([201, soon]);
  expect(await publish(body.key)).toBe(202);
  await eventually('the key has expired', async () => (await publish(body.key)) === 401, {
    withinMs: 60_000 + 2 * KEY_CACHE_MS,
  });
  const past: Problem = await ada.post(keysPath(), { expiresAt: '2020-01-01T00:00:00+02:00' });
  expect([past.status, past.body.errors?.[0]?.pointer]).toEqual([422, '/expiresAt']);
  for (const expiresAt of ['tomorrow', '2099-01-01', 4_102_444_800]) {
    expect((await makeKey({ expiresAt })).status, `${expiresAt}`).toBe(422);
  }
  for (const id of ['', 'a/b', '-a', 'x'.repeat(64), 'ü']) expect((await makeKey({ id })).status, id).toBe(422);
});

test('50 concurrent calls with one id create one key, and there can be sixteen keys', async () => {
  const same = await Promise.all(Array.from({ length: 50 }, () => makeKey({ id: 'wanted-by-all' })));
  expect(same.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(same.filter(reply => reply.status === 409)).toHaveLength(49);
  const { key } = (same.find(({ status }) => status === 201) as Reply<MadeKey>).body;
  expect(await publish(key)).toBe(202);
  for (let there = (await listKeys()).length; there < 16; there++) expect((await makeKey()).status).toBe(201);
  const full = await makeKey();
  expect(full.status).toBe(422);
  expect(full.body).toMatchObject({ detail: expect.stringContaining('16') });
  expect(await listKeys()).toHaveLength(16);
  expect(await publish(key)).toBe(202);
});

test('keys can be created and removed concurrently without losing any', async () => {
  for (const { id } of await listKeys()) if (id !== 'by-git') await removeKey(id);
  const made = await Promise.all(Array.from({ length: 12 }, (_, n) => makeKey({ id: `beside-${n}` })));
  expect(made.map(({ status }) => status)).toEqual(made.map(() => 201));
  expect(await Promise.all(made.map(({ body }) => publish(body.key)))).toEqual(made.map(() => 202));
  // A key in Git is only removed by Git.
  await applyAs('argocd', 'shop', { ingressKeys: [] });
  const left = (await inCluster(['get', 'workspace', 'shop', '-o', 'jsonpath={.spec.ingressKeys[*].id}'])).split(' ');
  expect(left.toSorted()).toEqual(made.map(({ body }) => body.id).toSorted());
});

test('a change that is not applied does not return a success, and a key that was never returned is removed', async () => {
  await apply(world.installation.cluster, ownedTenant(world.issuer, 'late', 'ada'));
  await inCluster(['wait', 'workspace', 'late', '--for=condition=Ready', '--timeout=120s']);
  const late = publicId('Workspace', '', 'late');
  const calls = [
    () => makeKey({ id: 'unseen' }),
    () => ada.post('/waas/enable-producer', { producerTenantPublicId: late }),
    () => removeKey('beside-0'),
  ] as const;
  await ingress.kill('SIGSTOP');
  try {
    const replies = await Promise.all(calls.map(call => call()));
    expect(replies.map(reply => [reply.status, codeOf(reply)])).toEqual([
      [503, 'unavailable'],
      [503, 'not_in_force'],
      [503, 'not_in_force'],
    ]);
    expect(JSON.stringify(replies[0])).toContain('and was removed');
    // The key is not listed anymore. The call still returns the same response as long as the key may work.
    const again = await removeKey('beside-0');
    expect([again.status, codeOf(again)]).toEqual([503, 'not_in_force']);
  } finally {
    await ingress.kill('SIGCONT');
  }
  await eventually('the key is deleted', async () => (await removeKey('beside-0')).status === 204);
  const { key } = (await makeKey({ id: 'unseen' })).body;
  expect(await publish(key)).toBe(202);
  await eventually('the workspace is a producer', async () => (await calls[1]()).status === 200);
});

test('each person can read their own workspaces and accounts, including their role', async () => {
  const owners = [
    { issuer: world.issuer.url, group: 'operators', role: 'Admin' },
    { issuer: world.issuer.url, subject: 'ada', role: 'Owner' },
  ];
  await apply(world.installation.cluster, [
    { apiVersion: 'sluice.dev/v1alpha1', kind: 'Account', metadata: { name: 'ours' }, spec: { owners, plan: 'Free' } },
  ]);
  const token = await world.issuer.token({ sub: 'otto', groups: ['operators'] });
  const otto = createRestClient(facade.facadeUrl, token);
  await eventually(
    'the facade knows the account',
    async () => (await otto.get<{ data: unknown[] }>('/waas/accounts')).body.data.length === 1,
  );
  const theirs = expectDeclared('listAccounts', await otto.get<{ data: object[] }>('/waas/accounts')).body.data;
  expect(theirs).toEqual([
    { publicId: publicId('Account', '', 'ours'), name: 'ours', displayName: null, plan: 'Free', role: 'Admin' },
  ]);
  const single = await otto.get(`/waas/accounts/${publicId('Account', '', 'ours')}`);
  expect(expectDeclared('getAccount', single).body).toEqual(theirs[0]);
  expect((await eve.get(`/waas/accounts/${publicId('Account', '', 'ours')}`)).status).toBe(403);
  const names = async (client: RestClient) =>
    expectDeclared('listWorkspaces', await client.get<{ data: { name: string }[] }>('/waas/workspaces')).body.data.map(
      ({ name }) => name,
    );
  expect(await names(ada)).toEqual(['fresh', 'git', 'late', 'shop']);
  expect(await names(eve)).toEqual(['other']);
  expect(await names(otto)).toEqual([]);
  expect((await eve.get(`/waas/workspaces/${shop}`)).status).toBe(403);
});

test('only owners can read a balance, and a Metered account does not have a remainder', async () => {
  const balanceOf = (name: string, client = ada) =>
    client.get(`/waas/accounts/${publicId('Account', '', name)}/tokens`);
  expect(expectDeclared('getTokens', await balanceOf('shop')).body).toEqual({
    accountPublicId: publicId('Account', '', 'shop'),
    plan: 'Metered',
    includedTokens: 10_000,
    usedTokens: 0,
    remainingTokens: null,
  });
  const free = await eventually('the plan is applied', async () => {
    const reply = await balanceOf('ours');
    return reply.status === 200 && reply;
  });
  expect(free.value.body).toMatchObject({ plan: 'Free', usedTokens: 0, remainingTokens: 10_000 });
  const foreign = await balanceOf('shop', eve);
  const absent = await balanceOf('nobody-has-this', eve);
  expect([foreign.status, absent.status]).toEqual([403, 403]);
  expect(absent.body).toEqual(foreign.body);
});

test('the log does not contain any secrets', async () => {
  const text = JSON.stringify([...(await facade.logLines()), ...(await ingress.logLines())]);
  expect(text).toContain('createIngressKey');
  expect(text).not.toMatch(/slk_|[0-9a-f]{64}/);
});
