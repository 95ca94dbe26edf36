import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../support/deadline.ts';
import type { Reply, RestClient } from '../support/rest-client.ts';
import { apply, ingressKey, integration, stream, subscription, waitForAll } from '../support/world.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

const ADA = 'ada@example.com';
const PARTNER = 'grace@example.com';

interface Line {
  readonly msg: string;
  readonly operation: string;
  readonly status: number;
  readonly requestId: string;
  readonly changes?: readonly {
    readonly kind: string;
    readonly before: object | null;
    readonly after: object | null;
  }[];
  readonly [name: string]: unknown;
}

let world: FacadeWorld;
let facade: Sluice;
let ada: RestClient;
let eve: RestClient;
let bob: RestClient;
let shop: string;
let file: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  const { cluster } = world.installation;
  await applyPermissions(cluster);
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-facade');
  file = join((await temporaryFolder('audit')).path, 'audit.log');
  const env = { SLUICE_AUDIT_FILE: file, SLUICE_LOG_LEVEL: 'silent', SLUICE_TRUSTED_PROXIES: 'none' };
  [facade] = await Promise.all([world.start({ role: 'facade', kubeconfig, env }), world.start({ role: 'controller' })]);
  ({ shop = '' } = await makeTenants(world, { shop: ADA, bob: 'bob' }));
  await apply(cluster, [
    stream('shop', 'orders'),
    stream('shop', 'carts'),
    ingressKey('shop', 'an-ingress-key-of-the-shop'),
    integration('shop', 'bob'),
    subscription('bob', 'shop', 'orders', { url: 'https://hooks.example.com/path-with-a-secret' }),
  ]);
  await waitForAll(cluster, 'subscription', 'bob');
  [ada, eve, bob] = await Promise.all([world.as(facade, ADA), world.as(facade, 'eve'), world.as(facade, 'bob')]);
});
afterAll(() => world?.stop());

const lines = async (): Promise<Line[]> =>
  (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Line);

/** Returns the audit line of a completed call. */
async function lineOf({ headers }: Reply): Promise<Line> {
  const id = headers.get('x-request-id');
  const { value } = await eventually(`there is an audit line of ${id}`, async () =>
    (await lines()).find(({ requestId }) => requestId === id),
  );
  return value;
}

test('access changes are audited with the values before and after, regardless of the log level', async () => {
  const invited = await ada.post<{ publicId: string }>('/waas/integrations', {
    producerTenantPublicId: shop,
    email: PARTNER,
  });
  expect(await lineOf(invited)).toMatchObject({
    audit: true,
    msg: 'call',
    issuer: world.issuer.url,
    subject: expect.stringMatching(/^hmac:[0-9a-f]{32}$/),
    access: { role: 'Owner', of: 'account', by: 'subject' },
    operation: 'inviteIntegration',
    about: { kind: 'Integration', namespace: 'shop', publicId: invited.body.publicId },
    changes: [
      { kind: 'Integration', before: null, after: { invitedEmail: expect.stringMatching(/^hmac:[0-9a-f]{32}$/) } },
    ],
    status: 201,
  });

  const revoked = await ada.post(`/waas/producer/${shop}/integrations/${invited.body.publicId}/revoke`);
  expect((await lineOf(revoked)).changes).toMatchObject([{ kind: 'Integration', after: { revoked: true } }]);

  const partner = publicId('Integration', 'shop', 'bob');
  const group = { producerTenantPublicId: shop, integrationPublicId: partner, groupKey: 'g' };
  const activated = await ada.post('/waas/activations', group);
  expect(activated.status, JSON.stringify(activated.body)).toBeLessThan(300);
  expect((await lineOf(activated)).changes).toMatchObject([{ kind: 'Activation', before: null }]);

  const orders = publicId('CatalogStream', 'shop', 'orders');
  const blocks = `/waas/producer/${shop}/integrations/${partner}/blocks/streams/${orders}`;
  expect((await lineOf(await ada.post(blocks))).changes).toMatchObject([{ kind: 'Block', before: null }]);
  expect((await lineOf(await ada.remove(blocks))).changes).toMatchObject([{ kind: 'Block', after: null }]);

  const keys = `/waas/producer/${shop}/ingress-keys`;
  const made = await ada.post<{ key: string }>(keys, { id: 'k1' });
  expect((await lineOf(made)).changes).toMatchObject([
    { kind: 'Workspace', after: { ingressKeys: [{ id: 'k1', sha256: expect.any(String) }] } },
  ]);
  expect((await lineOf(await ada.remove(`${keys}/k1`))).changes).toMatchObject([
    { kind: 'Workspace', before: { ingressKeys: [{ id: 'k1' }] } },
  ]);
  const text = await readFile(file, 'utf8');
  for (const secret of [made.body.key, ADA, PARTNER, '@']) expect(text).not.toContain(secret);
});

test('reads of a secret and calls to the inbox are audited, other reads are not', async () => {
  const partner = publicId('Integration', 'shop', 'bob');
  const subscriptions = `/waas/integrations/${partner}/subscriptions`;
  const listed = await bob.get<{ data: { publicId: string }[] }>(subscriptions);
  const id = listed.body.data[0]?.publicId as string;
  const read = await bob.get<{ secret: string }>(`${subscriptions}/${id}/secret`);
  expect(read.status).toBe(200);
  expect(await lineOf(read)).toMatchObject({
    operation: 'getSigningSecret',
    subject: 'bob',
    about: { kind: 'Subscription', namespace: 'bob', publicId: id },
    status: 200,
  });
  const range = { subscription: id, since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z', dryRun: true };
  const replay = await lineOf(await bob.post(`/waas/integrations/${partner}/replay`, range));
  expect(replay).toMatchObject({
    operation: 'replayEvents',
    about: { kind: 'Subscription', publicId: id },
    request: { subscription: id, dryRun: true },
  });
  expect(replay['request']).toHaveProperty('since');
  const url = 'https://hooks.example.com/another-secret';
  const endpoint = { url, headers: [{ name: 'authorization', value: 'Bearer header-secret' }] };
  const catalogEntryPublicId = publicId('CatalogStream', 'shop', 'carts');
  const made = await bob.post(subscriptions, { catalogEntryPublicId, endpoint });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  expect((await lineOf(made)).changes).toMatchObject([
    { kind: 'Subscription', before: null, after: { endpoint: { url: 'https://hooks.example.com' } } },
  ]);
  const text = await readFile(file, 'utf8');
  expect(text).not.toContain('listSubscriptions');
  for (const secret of [read.body.secret, 'path-with-a-secret', 'another-secret', 'header-secret', 's2.'])
    expect(text).not.toContain(secret);
});

test('a call without access is audited with its network, using an id that the caller cannot choose', async () => {
  const headers = { 'x-request-id': 'chosen', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  const refused = await eve.call('POST', `/waas/producer/${shop}/ingress-keys`, { id: 'k2' }, headers);
  expect(refused.status).toBe(403);
  expect(await lineOf(refused)).toMatchObject({
    msg: 'refused call',
    status: 403,
    reason: 'forbidden',
    subject: 'eve',
    operation: 'createIngressKey',
    params: { tenant: shop },
    network: '127.0.0.0/24',
    traceId: 'a'.repeat(32),
  });
  expect(await facade.metric('sluice_facade_forbidden_total', { code: 'forbidden' })).toBeGreaterThan(0);
  expect(await facade.metric('sluice_facade_audit_lines_total', { result: 'written' })).toBeGreaterThan(5);
});

test('without a file, the audit lines are part of the log, and all of them have been written when the facade ends', async () => {
  const { cluster } = world.installation;
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-facade');
  const other = await world.start({ role: 'facade', kubeconfig, env: { SLUICE_LOG_LEVEL: 'silent' } });
  const owner = await world.as(other, ADA);
  const answered = await Promise.all(
    Array.from({ length: 10 }, () => owner.post('/waas/enable-producer', { producerTenantPublicId: shop })),
  );
  await other.stop();
  const audited = (await other.logLines()).filter(line => line['audit'] === true);
  expect(audited).toHaveLength(answered.length);
  expect(new Set(audited.map(line => line['requestId']))).toEqual(
    new Set(answered.map(({ headers }) => headers.get('x-request-id'))),
  );
});

test('a facade that cannot write audit lines does not start', async () => {
  const env = { SLUICE_AUDIT_FILE: '/nowhere/audit.log' };
  await expect(world.start({ role: 'facade', env })).rejects.toThrow(/SLUICE_AUDIT_FILE: cannot be opened/);
});
