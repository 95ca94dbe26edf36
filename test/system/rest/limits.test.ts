import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { partKeys } from '../../../src/part/keys.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample } from '../support/publisher.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import {
  activation,
  apply,
  conditionOf,
  ingressKey,
  kubectl,
  type Manifest,
  pkg,
  stream,
  waitForAll,
} from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from './support/facade-world.ts';

/** Tests account limits with two replicas of the facade. */

let world: FacadeWorld;
let sluice: Sluice;
let replicas: readonly [RestClient, RestClient];
let eve: RestClient;

beforeAll(async () => {
  world = await openFacadeWorld();
  const env = {
    SLUICE_FREE_LIMITS: 'streams=1',
    SLUICE_MAX_LIMITS: 'packages=2',
    SLUICE_INVITED_LIMITS: 'streams=0,blocks=5',
  };
  const replica = world.start({ env, role: 'facade' });
  sluice = await world.start({ env });
  replicas = [await world.as(sluice, 'ada'), await world.as(await replica, 'ada')];
  eve = await world.as(sluice, 'eve');
});
afterAll(() => world?.stop());

const [ofAda, other] = [() => replicas[0], () => replicas[1]];
const accountId = (name: string) => publicId('Account', '', name);
const codeOf = ({ status, body }: Problem | Reply) =>
  status < 300 ? status : `${status} ${(body as Problem['body']).code}`;

/** Creates a tenant of ada. Waits until both replicas have received it. */
async function makeTenant(name: string, account: object): Promise<string> {
  await apply(world.installation.cluster, ownedTenant(world.issuer, name, 'ada', account));
  for (const replica of replicas) {
    const known = async () => (await replica.get(`/waas/accounts/${accountId(name)}/limits`)).status === 200;
    await eventually('a replica knows the account', known);
  }
  await waitForAll(world.installation.cluster, 'account', '');
  await waitForAll(world.installation.cluster, 'workspace', '');
  return tenantId(name);
}

const setLimits = (name: string, limits: object) =>
  kubectl(world.installation.cluster, [
    'patch',
    'account',
    name,
    '--type=merge',
    '-p',
    JSON.stringify({ spec: { limits } }),
  ]);

const namesOf = async (kind: string, namespace: string): Promise<string[]> => {
  const names = await kubectl(world.installation.cluster, ['get', kind, '-n', namespace, '-o', 'name']);
  return names.split('\n').flatMap(line => line.split('/')[1] ?? []);
};

const putStream = (client: RestClient, tenant: string, name: string) =>
  client.put<{ publicId: string; detail?: string }>('/waas/streams', {
    producerTenantPublicId: tenant,
    name,
    isPublic: true,
  });

interface LimitsBody {
  readonly limits: Readonly<Record<string, { limit: number | null; used: number | null }>>;
}

test('two replicas create objects up to the limit, and do not store refused objects', async () => {
  const shop = await makeTenant('shop', { plan: 'Metered', limits: { streams: 6 } });
  const replies = await Promise.all(
    Array.from(
      { length: 24 },
      async (_, n) => [`s${n}`, await putStream(replicas[n % 2] as RestClient, shop, `s${n}`)] as const,
    ),
  );
  const made = replies.filter(([, { status }]) => status === 200).map(([name]) => name);
  // Each of the two replicas can exceed the limit by one object.
  expect(made.length).toBeGreaterThanOrEqual(6);
  expect(made.length).toBeLessThanOrEqual(8);
  const refused = replies.filter(([name]) => !made.includes(name));
  expect(new Set(refused.map(([, reply]) => codeOf(reply)))).toEqual(new Set(['409 limit_reached']));
  expect((await namesOf('catalogstream', 'shop')).toSorted()).toEqual(made.toSorted());
  const [, sample] = refused[0] ?? [];
  expect(sample?.body.detail).toMatch(
    /^The account acc_\w+ has \d streams in all of its workspaces together\. Its limit is 6\. Nothing was changed\. Ask the operator of this Sluice to raise streams for this account\.$/,
  );
});

test('a raised limit is immediately in force on each replica, even for the next workspace of the account', async () => {
  const { cluster } = world.installation;
  const [, , ...workspace] = ownedTenant(world.issuer, 'shop-2', 'ada');
  await apply(cluster, [
    ...ownedTenant(world.issuer, 'shop-2', 'ada').slice(0, 1),
    ...workspace.map(each => ({ ...each, spec: { account: 'shop' } })),
  ]);
  await waitForAll(cluster, 'workspace', '');
  const second = tenantId('shop-2');
  const used = async (client: RestClient) =>
    (await client.get<LimitsBody>(`/waas/accounts/${accountId('shop')}/limits`)).body.limits['streams']?.used ?? 0;
  const streams = (await namesOf('catalogstream', 'shop')).length;
  for (const replica of replicas) {
    await eventually('the replica counts all streams', async () => (await used(replica)) === streams);
    expect(codeOf(await putStream(replica, second, 'one'))).toBe('409 limit_reached');
  }
  await setLimits('shop', { streams: streams + 1 });
  expect(codeOf(await putStream(ofAda(), second, 'one'))).toBe(200);
  await setLimits('shop', { streams: streams + 2 });
  expect(codeOf(await putStream(other(), tenantId('shop'), 'another'))).toBe(200);
  // Both objects exist, so repeating the calls does not require any capacity.
  expect(codeOf(await putStream(ofAda(), second, 'one'))).toBe(200);
  expect(codeOf(await putStream(ofAda(), second, 'two'))).toBe('409 limit_reached');
});

test('the limits of an account are part of the quota of each of its workspaces, and change with them', async () => {
  const { cluster } = world.installation;
  await makeTenant('counted', { plan: 'Metered', limits: { streams: 7, packages: 50, blocks: 1 } });
  const [, , workspace] = ownedTenant(world.issuer, 'counted-2', 'ada');
  await apply(cluster, [{ ...(workspace as Manifest), spec: { account: 'counted' } }]);
  const quotaOf = async (namespace: string) => {
    const get = [
      'get',
      'resourcequota',
      'sluice',
      '-n',
      namespace,
      '--ignore-not-found',
      '-o',
      'jsonpath={.spec.hard}',
    ];
    return JSON.parse((await kubectl(cluster, get)) || '{}') as object;
  };
  const until = async (hard: object) => {
    for (const namespace of ['counted', 'counted-2']) {
      await expect.poll(() => quotaOf(namespace), { timeout: 60_000, interval: 100 }).toEqual(hard);
    }
  };
  // The installation's ceiling is lower.
  await until({ 'count/catalogstreams.sluice.dev': '7', 'count/packages.sluice.dev': '2' });
  await setLimits('counted', { streams: 9, packages: 1, subscriptions: 5 });
  const counts = { 'count/catalogstreams.sluice.dev': '9', 'count/packages.sluice.dev': '1' };
  await until({ ...counts, 'count/subscriptions.sluice.dev': '5' });
  // The quota does not contain the plan's defaults.
  await makeTenant('uncounted', { plan: 'Free' });
  expect(await quotaOf('uncounted')).toEqual({});
});

test('the status shows that a limit was reached, and is not written for each object', async () => {
  const { cluster } = world.installation;
  const tenant = await makeTenant('watched', { plan: 'Metered', limits: { streams: 3 } });
  const condition = () => conditionOf(cluster, 'account/watched', undefined, 'LimitReached');
  const version = () => kubectl(cluster, ['get', 'account', 'watched', '-o', 'jsonpath={.metadata.resourceVersion}']);
  const until = (expected: string) =>
    eventually(`the condition is ${expected}`, async () => (await condition()) === expected);
  const before = await version();
  for (const name of ['a', 'b']) expect(codeOf(await putStream(ofAda(), tenant, name))).toBe(200);
  expect([await version(), await condition()]).toEqual([before, '']);
  expect(codeOf(await putStream(ofAda(), tenant, 'c'))).toBe(200);
  await until('True/AtLimit');
  const reached = await version();
  for (const name of ['d', 'e']) expect(codeOf(await putStream(ofAda(), tenant, name))).toBe('409 limit_reached');
  expect(await version()).toBe(reached);
  await setLimits('watched', { streams: 10 });
  await until('False/WithinLimits');
});

test('defaults of the plan and the ceiling of the installation are in force, and the owner can read them', async () => {
  const tenant = await makeTenant('free', { plan: 'Free', limits: { packages: 50, blocks: 7 } });
  expect(codeOf(await putStream(ofAda(), tenant, 'one'))).toBe(200);
  expect(codeOf(await putStream(ofAda(), tenant, 'two'))).toBe('409 limit_reached');
  const makePackage = (name: string) => ofAda().post(`/waas/producer/${tenant}/packages`, { name });
  expect(codeOf(await makePackage('a'))).toBe(201);
  expect(codeOf(await makePackage('b'))).toBe(201);
  const beyond = (await makePackage('c')) as Problem;
  expect(codeOf(beyond)).toBe('409 limit_reached');
  expect(beyond.body.detail).toContain(
    'The installation does not allow a higher limit (SLUICE_MAX_LIMITS). Only its operator can raise this maximum.',
  );
  const path = `/waas/accounts/${accountId('free')}/limits`;
  const read = expectDeclared('getLimits', await ofAda().get<LimitsBody>(path));
  expect(read.body).toMatchObject({
    accountPublicId: accountId('free'),
    plan: 'Free',
    limits: {
      streams: { limit: 1, used: 1 },
      packages: { limit: 2, used: 2 },
      blocks: { limit: 7, used: 0 },
      activations: { limit: 10_000, used: 0 },
      invitationMailsPerDay: { limit: 100, used: 0 },
      requestsPerMinute: { limit: 30_000, used: null },
    },
  });
  expect((await eve.get(path)).status).toBe(403);
  const account = ['get', 'account', 'free', '-o', 'jsonpath={.status.limits}'];
  const shown = JSON.parse(await kubectl(world.installation.cluster, account)) as Record<string, number>;
  const inForce = Object.entries(read.body.limits).filter(([, { limit }]) => limit !== null);
  expect(shown).toEqual(Object.fromEntries(inForce.map(([name, { limit }]) => [name, limit])));
  const ratio = (limit: string) =>
    sluice.metric('sluice_controller_account_limit_used_ratio', { account: accountId('free'), limit });
  await expect.poll(() => ratio('streams'), { timeout: 60_000 }).toBe(1);
  expect(await ratio('blocks')).toBe(0);
});

test('the account shows the stored bytes of all of its streams', async () => {
  const { cluster } = world.installation;
  await makeTenant('stored', { plan: 'Metered' });
  await apply(cluster, [
    stream('stored', 'one'),
    stream('stored', 'two'),
    ingressKey('stored', 'the-ingress-key-of-stored'),
  ]);
  await waitForAll(cluster, 'catalogstream', 'stored');
  const used = async () =>
    (await ofAda().get<LimitsBody>(`/waas/accounts/${accountId('stored')}/limits`)).body.limits['storedBytes']?.used;
  expect(await used()).toBe(0);
  const bytesOf = async (queue: string) => {
    const key = 'the-ingress-key-of-stored';
    const publisher = createPublisher({ ingressUrl: sluice.ingressUrl, producer: 'stored', queue, key });
    const before = (await used()) ?? 0;
    const isAccepted = async () =>
      (await publisher.post(makeSample(queue, undefined, 'x'.repeat(1_000)))).status === 202;
    await eventually('the ingress key works', isAccepted);
    await publisher.close();
    return ((await used()) ?? 0) - before;
  };
  const shown = [await bytesOf('one'), await bytesOf('two')];
  const stored = async (queue: string) => {
    const { meta } = partKeys({ tenant: tenantId('stored'), queue, gen: '', number: 0 });
    return Number(await world.installation.redis.command('HGET', meta, 'bytes'));
  };
  expect(shown).toEqual([await stored('one'), await stored('two')]);
  for (const each of shown) expect(each).toBeGreaterThan(1_000);
});

test('calls which close something, and repeated calls, still work at the limit', async () => {
  const { cluster } = world.installation;
  const tenant = await makeTenant('full', { plan: 'Metered' });
  await apply(cluster, [stream('full', 'orders'), stream('full', 'bills'), pkg('full', 'basic', ['orders'])]);
  const invited = await ofAda().post<{ publicId: string }>('/waas/integrations', {
    producerTenantPublicId: tenant,
    email: 'eve@example.com',
  });
  const integrationPublicId = invited.body.publicId;
  const activate = (groupKey: string) =>
    ofAda().post('/waas/activations', { producerTenantPublicId: tenant, integrationPublicId, groupKey });
  expect(codeOf(await activate('k'))).toBe(200);
  await apply(cluster, [activation('full', (await namesOf('integration', 'full'))[0] as string, 'of-git')]);
  await waitForAll(cluster, 'activation', 'full');
  await setLimits('full', {
    streams: 0,
    packages: 0,
    integrations: 0,
    activations: 0,
    subscriptions: 0,
    blocks: 0,
  });
  const limits = async (client: RestClient) =>
    (await client.get<LimitsBody>(`/waas/accounts/${accountId('full')}/limits`)).body.limits;
  await eventually('the facade knows the limits', async () => (await limits(ofAda()))['blocks']?.limit === 0);

  const blocks = `/waas/producer/${tenant}/integrations/${integrationPublicId}/blocks`;
  const target = (kind: 'CatalogStream' | 'Package', name: string) => publicId(kind, 'full', name);
  const calls: [string, () => Promise<Reply>, number | string][] = [
    ['new stream', () => putStream(ofAda(), tenant, 'fresh'), '409 limit_reached'],
    ['new package', () => ofAda().post(`/waas/producer/${tenant}/packages`, { name: 'fresh' }), '409 limit_reached'],
    [
      'new invitation',
      () => ofAda().post('/waas/integrations', { producerTenantPublicId: tenant, email: 'x@example.com' }),
      '409 limit_reached',
    ],
    ['new activation', () => activate('fresh'), '409 limit_reached'],
    [
      'new stream block',
      () => ofAda().post(`${blocks}/streams/${target('CatalogStream', 'bills')}`),
      '409 limit_reached',
    ],
    ['repeated stream', () => putStream(ofAda(), tenant, 'orders'), 200],
    [
      'repeated invitation',
      () => ofAda().post('/waas/integrations', { producerTenantPublicId: tenant, email: 'eve@example.com' }),
      200,
    ],
    ['repeated activation', () => activate('k'), 200],
    ['activation that Git has', () => activate('of-git'), 200],
    ['package block', () => ofAda().post(`${blocks}/packages/${target('Package', 'basic')}`), 204],
    ['repeated package block', () => ofAda().post(`${blocks}/packages/${target('Package', 'basic')}`), 204],
    ['unblock', () => ofAda().remove(`${blocks}/packages/${target('Package', 'basic')}`), 204],
    [
      'deactivate',
      () => ofAda().remove('/waas/activations', { producerTenantPublicId: tenant, integrationPublicId, groupKey: 'k' }),
      204,
    ],
    [
      'deactivate what Git has',
      () =>
        ofAda().remove('/waas/activations', {
          producerTenantPublicId: tenant,
          integrationPublicId,
          groupKey: 'of-git',
        }),
      204,
    ],
    ['activate again what is revoked', () => activate('k'), '409 limit_reached'],
    ['archive', () => ofAda().post(`/waas/producer/${tenant}/packages/${target('Package', 'basic')}/archive`), 204],
    ['revoke', () => ofAda().post(`/waas/producer/${tenant}/integrations/${integrationPublicId}/revoke`), 204],
  ];
  for (const [what, call, expected] of calls) expect([what, codeOf(await call())]).toEqual([what, expected]);
  expect(await namesOf('catalogstream', 'full')).toEqual(['bills', 'orders']);
  expect(await namesOf('package', 'full')).toEqual(['basic']);
  expect(await namesOf('integration', 'full')).toHaveLength(1);
});

test('an account that is created for an invitation has the limits of the installation', async () => {
  const { cluster } = world.installation;
  const tenant = await makeTenant('inviting', { plan: 'Metered' });
  const invited = await ofAda().post<{ publicId: string }>('/waas/integrations', {
    producerTenantPublicId: tenant,
    email: 'grace@example.com',
  });
  expect(invited.status).toBe(201);
  const [name] = await namesOf('integration', 'inviting');
  const secret = async () =>
    cluster.kubectl(['get', 'secret', `${name}-invitation`, '-n', 'inviting', '-o', 'jsonpath={.data.token}']);
  const { value } = await eventually('there is a token', async () => ((await secret()).stdout || undefined) ?? false);
  const grace = await world.as(sluice, 'grace');
  const token = Buffer.from(value, 'base64').toString();
  const accepted = await grace.post<{ workspacePublicId: string; accountPublicId: string }>(
    '/waas/invitations/accept',
    {
      token,
    },
  );
  expect(accepted.status, JSON.stringify(accepted.body)).toBe(200);
  const { workspacePublicId, accountPublicId } = accepted.body;
  const { limits } = (await grace.get<LimitsBody>(`/waas/accounts/${accountPublicId}/limits`)).body;
  expect([limits['streams'], limits['blocks'], limits['packages']]).toEqual([
    { limit: 0, used: 0 },
    { limit: 5, used: 0 },
    { limit: 2, used: 0 },
  ]);
  expect(codeOf(await putStream(grace, workspacePublicId, 'mine'))).toBe('409 limit_reached');
});
