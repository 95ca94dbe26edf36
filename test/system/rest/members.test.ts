import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_VERSION } from '../../../src/api/group-version.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { eventually } from '../support/deadline.ts';
import { createRestClient, type Reply, type RestClient } from '../support/rest-client.ts';
import { apply } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { accept, codeOf, type InvitationWorld, openInvitationWorld } from './support/invitation-world.ts';

interface Member {
  readonly issuer: string;
  readonly subject?: string;
  readonly group?: string;
  readonly role?: string;
}
type Members = { readonly members: readonly Member[] };

let at: InvitationWorld;
let issuer: string;
/** The `acc_…` id of the account that was created when grace accepted an invitation, and the path of its members. */
let account: string;
let path: string;
let [grace, bob, vera]: readonly RestClient[] = [];

beforeAll(async () => {
  at = await openInvitationWorld({ facadeEnv: { SLUICE_INVITED_LIMITS: 'streams=7' } });
  issuer = at.world.issuer.url;
  [grace, bob, vera] = await Promise.all([at.as('grace'), at.as('bob', 1), at.as('vera', 2)]);
  account = (await accept((await at.invite()).token, grace as RestClient)).body.accountPublicId;
  path = `/waas/accounts/${account}/members`;
});
afterAll(() => at?.stop());

const member = (subject: string, role: string): Member => ({ issuer, subject, role });
const put = (by: RestClient | undefined, members: readonly Member[], to = path): Promise<Reply<Members>> =>
  (by as RestClient).call('PUT', to, { members });

/** Waits until the facade uses the current role of a person. */
async function untilRole(by: RestClient | undefined, role: string | undefined): Promise<void> {
  await eventually(`the role is ${role}`, async () => {
    const { status, body } = await (by as RestClient).get<{ role?: string }>(`/waas/accounts/${account}`);
    return role === undefined ? status === 403 : body.role === role;
  });
}

test('the caller who accepted the invitation is the only member', async () => {
  const listed = expectDeclared('listMembers', await (grace as RestClient).get<Members>(path));
  expect(listed).toMatchObject({ status: 200, body: { members: [member('grace', 'Owner')] } });
  expect((await (bob as RestClient).get(path)).status).toBe(403);
});

test('an Owner adds members, whose permissions are limited to their role', async () => {
  const wanted = [member('vera', 'Viewer'), { issuer, subject: 'bob' }, member('grace', 'Owner')];
  const added = expectDeclared('replaceMembers', await put(grace, wanted));
  expect(added.status, JSON.stringify(added.body)).toBe(200);
  expect(added.body.members).toEqual([member('bob', 'Admin'), member('grace', 'Owner'), member('vera', 'Viewer')]);
  // The settings from when the account was created are kept.
  const { body } = await (grace as RestClient).get<{ limits: { streams: { limit: number } } }>(
    `/waas/accounts/${account}/limits`,
  );
  expect(body.limits.streams.limit).toBe(7);
  await untilRole(bob, 'Admin');
  await untilRole(vera, 'Viewer');
  expect((await (vera as RestClient).get<Members>(path)).body).toEqual(added.body);
  for (const [by, role] of [
    [bob, 'Admin'],
    [vera, 'Viewer'],
  ] as const) {
    const refused = await put(by, [member('bob', 'Owner')]);
    expect(refused).toMatchObject({
      status: 403,
      body: { code: 'insufficient_role', detail: expect.stringContaining(role) },
    });
  }
  expect((await (grace as RestClient).get<Members>(path)).body).toEqual(added.body);
});

test('a member of an issuer that is not configured is refused, and the answer names the issuer of the caller', async () => {
  const { members } = (await (grace as RestClient).get<Members>(path)).body;
  const refused = await put(grace, [...members, { issuer: `${issuer}/`, subject: 'eve' }]);
  const errors = [{ pointer: `/members/${members.length}/issuer`, detail: expect.stringContaining(issuer) }];
  expect(refused).toMatchObject({ status: 422, body: { code: 'invalid_request', errors } });
  expect((await (grace as RestClient).get<Members>(path)).body.members).toEqual(members);
});

test('a Viewer of the account can read its workspaces, but not change anything', async () => {
  const [workspace] = (
    await (vera as RestClient).get<{ data: { publicId: string; role: string }[] }>('/waas/workspaces')
  ).body.data;
  expect(workspace?.role).toBe('Viewer');
  const producer = `/waas/producer/${workspace?.publicId}`;
  expect((await (vera as RestClient).get(`${producer}/catalog`)).status).toBe(200);
  const refused = [
    await (vera as RestClient).get(`${producer}/ingress-keys`),
    await (vera as RestClient).post(`${producer}/ingress-keys`, {}),
    await (vera as RestClient).call('PUT', '/waas/streams', { producerTenantPublicId: workspace?.publicId, name: 'x' }),
    await accept((await at.invite()).token, vera as RestClient, account),
  ];
  expect(refused.map(codeOf)).toEqual(refused.map(() => 'insufficient_role'));
});

test('setting the same list again does not change anything', async () => {
  const version = () => at.inCluster(['get', 'accounts', '-o', 'jsonpath={.items[*].metadata.resourceVersion}']);
  const [{ members }, before] = [(await (grace as RestClient).get<Members>(path)).body, await version()];
  expect((await put(grace, members.toReversed())).status).toBe(200);
  expect(await version()).toBe(before);
});

test('a change of a list that was changed in the meantime is rejected if it contains the entity tag', async () => {
  const read = async () => {
    const reply = expectDeclared('listMembers', await (grace as RestClient).get<Members>(path));
    return { tag: reply.headers.get('etag') ?? '', members: reply.body.members };
  };
  const change = (ifMatch: string, members: readonly Member[]) =>
    (grace as RestClient).call<Members & { code?: string }>('PUT', path, { members }, { 'if-match': ifMatch });
  const { tag, members } = await read();
  const withEve = [...members, member('eve', 'Viewer')];
  const added = expectDeclared('replaceMembers', await change(tag, withEve));
  expect([added.status, added.headers.get('etag')]).toEqual([200, expect.stringMatching(/^"[\w-]{22}"$/)]);
  const late = await change(tag, [...members, member('mallory', 'Viewer')]);
  expect(late).toMatchObject({ status: 412, body: { code: 'precondition_failed' } });
  const { tag: current, members: kept } = await read();
  expect(kept).toContainEqual(member('eve', 'Viewer'));
  expect(current).toBe(added.headers.get('etag'));
  // A change can be repeated if its response was lost.
  expect((await change(tag, withEve)).status).toBe(200);
  expect((await change(current, members)).body.members).toEqual(members);
});

test('there is always an Owner, and a removed member loses access', async () => {
  for (const members of [
    [member('bob', 'Owner')],
    [member('grace', 'Admin')],
    [member('grace', 'Owner'), member('grace', 'Viewer')],
  ]) {
    expect(await put(grace, members)).toMatchObject({ status: 422, body: { code: 'invalid_request' } });
  }
  expect((await put(grace, [member('grace', 'Owner'), member('bob', 'Owner')])).status).toBe(200);
  await untilRole(vera, undefined);
  await untilRole(bob, 'Owner');
  // One of two concurrent calls fails. The member that is removed first can no longer change members, even if the
  // other facade does not know this yet.
  const both = await Promise.all([put(grace, [member('grace', 'Owner')]), put(bob, [member('bob', 'Owner')])]);
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403]);
});

test('members of an account that was created with kubectl cannot be changed using REST', async () => {
  const owners = [member('ada', 'Owner')];
  await apply(at.world.installation.cluster, [
    { apiVersion: API_VERSION, kind: 'Account', metadata: { name: 'from-git' }, spec: { owners } },
  ]);
  const to = `/waas/accounts/${publicId('Account', '', 'from-git')}/members`;
  await eventually('the facade knows the account', async () => (await at.ada.get(to)).status === 200);
  expect((await put(at.ada, owners, to)).status).toBe(200);
  const refused = await put(at.ada, [...owners, member('eve', 'Admin')], to);
  expect(refused).toMatchObject({ status: 409, body: { code: 'field_managed' } });
  const cleared = '{"metadata":{"managedFields":[{}]}}';
  await at.inCluster(['patch', 'account', 'from-git', '--type=merge', '-p', cleared]);
  const denied = await put(at.ada, [...owners, member('eve', 'Admin')], to);
  expect(denied).toMatchObject({
    status: 409,
    body: { code: expect.stringMatching(/^(refused_by_policy|field_managed)$/) },
  });
  expect((await at.ada.get<Members>(to)).body.members).toEqual(owners);
});

test('an account that is being deleted does not return because its members are replaced meanwhile', async () => {
  const zoe = await at.as('zoe', 1);
  const { accountPublicId } = (await accept((await at.invite()).token, zoe)).body;
  const of = `/waas/accounts/${accountPublicId}`;
  const { name } = (await zoe.get<{ name: string }>(of)).body;
  const [workspace] = (await zoe.get<{ data: { name: string }[] }>('/waas/workspaces')).body.data;
  await at.inCluster(['delete', 'account', name, '--wait=false']);
  const [refused] = await Promise.all([
    put(zoe, [member('zoe', 'Owner'), member('eve', 'Owner')], `${of}/members`),
    at.inCluster(['delete', 'workspace', workspace?.name ?? '', '--wait=false']),
  ]);
  expect(refused).toMatchObject({ status: 409, body: { code: 'being_deleted' } });
  await eventually(
    'the account does not exist',
    async () => (await at.inCluster(['get', 'account', name, '--ignore-not-found'])) === '',
  );
});

test('a group can be a member', async () => {
  const by = [grace, bob].find(each => each !== undefined) as RestClient;
  const token = await at.world.issuer.token({ sub: 'otto', groups: ['auditors'] });
  const otto = createRestClient((at.facades[0] as { facadeUrl: string }).facadeUrl, token);
  const now = await (by as RestClient).get<Members>(path);
  const owner = now.status === 200 ? by : (bob as RestClient);
  const { members } = (await owner.get<Members>(path)).body;
  expect((await put(owner, [...members, { issuer, group: 'auditors', role: 'Viewer' }])).status).toBe(200);
  await untilRole(otto, 'Viewer');
});
