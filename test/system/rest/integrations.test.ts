import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import { apply, conditionOf, integration, kubectl } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

interface Invited {
  readonly publicId: string;
  readonly invitedEmail: string | null;
  readonly status: string;
}
interface Entry extends Invited {
  readonly name: string;
  readonly receivingTenantPublicId: string | null;
  readonly expiresAt: string | null;
}
interface Page {
  readonly data: readonly Entry[];
  readonly nextCursor: string | null;
}

let world: FacadeWorld;
let sluice: Sluice;
let ada: RestClient;
let eve: RestClient;
let shop: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  ({ shop = '' } = await makeTenants(world, { shop: 'ada', other: 'eve' }));
  [ada, eve] = await Promise.all([world.as(sluice, 'ada'), world.as(sluice, 'eve')]);
});
afterAll(() => world?.stop());

const invite = async (email: string, by = ada): Promise<Reply<Invited>> =>
  expectDeclared('inviteIntegration', await by.post('/waas/integrations', { producerTenantPublicId: shop, email }));
const read = async (id: string) =>
  expectDeclared('getIntegration', await ada.get<Entry>(`/waas/producer/${shop}/integrations/${id}`)).body;
const list = async (query = '') =>
  expectDeclared('listIntegrations', await ada.get<Page>(`/waas/producer/${shop}/integrations${query}`)).body;
const revoke = (id: string, by = ada) => by.post(`/waas/producer/${shop}/integrations/${id}/revoke`);
const inCluster = (args: readonly string[]) => kubectl(world.installation.cluster, [...args, '-n', 'shop']);
const versionOf = (name: string) => inCluster(['get', 'intg', name, '-o', 'jsonpath={.metadata.resourceVersion}']);

/** Creates an invited and transferred Integration, and waits until the controller has written its last change. */
async function inviteAndSettle(email: string): Promise<Entry> {
  const { publicId } = (await invite(email)).body;
  const { name } = await read(publicId);
  await inCluster(['wait', `intg/${name}`, '--for=condition=InvitationSent', '--timeout=120s']);
  return read(publicId);
}

test('an invitation is created once, regardless of the case of its address', async () => {
  const first = await invite('Grace@Example.com');
  expect(first.status).toBe(201);
  expect(first.body).toEqual({
    publicId: expect.stringMatching(/^int_[0-9a-z]{20}$/),
    invitedEmail: 'Grace@Example.com',
    status: 'Pending',
  });
  const { publicId } = first.body;
  expect(first.headers.get('location')).toBe(`/waas/producer/${shop}/integrations/${publicId}`);
  const { name } = await inviteAndSettle('grace@example.com');
  // The hash of its token has been stored when the call returns.
  const manifest = await inCluster(['get', 'intg', name, '-o', 'jsonpath={.spec}{.status.invitation.tokenHash}']);
  expect(manifest).toMatch(/^\{"invitedEmail":"Grace@Example.com"\}[0-9a-f]{64}$/);
  expect(name).toMatch(/^int-[0-9a-z]{20}$/);
  const version = await versionOf(name);
  for (const email of ['Grace@Example.com', 'grace@example.com', 'GRACE@EXAMPLE.COM']) {
    const again = await invite(email);
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
  }
  expect(await versionOf(name)).toBe(version);
  expect(await read(publicId)).toMatchObject({ publicId, name, status: 'Pending', receivingTenantPublicId: null });
  expect((await list()).data.map(each => each.publicId)).toEqual([publicId]);
});

test('50 concurrent calls create one invitation, even if the address is written differently', async () => {
  const spell = (n: number) => (n % 2 === 0 ? 'linus@example.com' : 'Linus@Example.com');
  const replies = await Promise.all(Array.from({ length: 50 }, (_, n) => invite(spell(n))));
  expect(new Set(replies.map(({ body }) => body.publicId)).size).toBe(1);
  expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(replies.some(({ status }) => status === 201)).toBe(true);
  const addresses = await inCluster([
    'get',
    'intg',
    '-o',
    'jsonpath={range .items[*]}{.spec.invitedEmail}{"\\n"}{end}',
  ]);
  expect(addresses.toLowerCase().match(/linus@example.com/g)).toHaveLength(1);
});

test('a revoked integration is closed when the call returns, and another invitation creates a new integration', async () => {
  const invited = await inviteAndSettle('barbara@example.com');
  for (const _ of [1, 2, 3]) expectDeclared('revokeIntegration', await revoke(invited.publicId));
  const version = await versionOf(invited.name);
  expect((await revoke(invited.publicId)).status).toBe(204);
  expect(await versionOf(invited.name)).toBe(version);
  expect(await conditionOf(world.installation.cluster, `intg/${invited.name}`, 'shop', 'Accepted')).toBe(
    'False/Revoked',
  );
  const again = await invite('barbara@example.com');
  expect(again.status).toBe(201);
  expect(again.body).toMatchObject({ status: 'Pending', invitedEmail: 'barbara@example.com' });
  expect(again.body.publicId).not.toBe(invited.publicId);
  expect((await invite('barbara@example.com')).body).toEqual(again.body);
  expect((await list('?status=Revoked')).data.map(({ publicId }) => publicId)).toEqual([invited.publicId]);
});

test('a declined or expired invitation can be created again', async () => {
  const declined = await inviteAndSettle('donald@example.com');
  await inCluster(['patch', 'intg', declined.name, '--type=merge', '-p', '{"spec":{"declined":true}}']);
  await eventually('the facade knows the state', async () => (await read(declined.publicId)).status === 'Declined');
  const second = await inviteAndSettle('donald@example.com');
  expect(second.publicId).not.toBe(declined.publicId);
  const past = '{"status":{"invitation":{"expiresAt":"2020-01-01T00:00:00Z"}}}';
  await inCluster(['patch', 'intg', second.name, '--subresource=status', '--type=merge', '-p', past]);
  const again = async () => {
    const reply = await invite('donald@example.com');
    return reply.status === 201 && reply;
  };
  const { value: third } = await eventually('the facade knows that it expired', again);
  expect(third.body.publicId).not.toBe(second.publicId);
  expect((await read(second.publicId)).status).toBe('Expired');
});

test('an invitation of kubectl is found by its address; a direct grant has no address', async () => {
  await apply(world.installation.cluster, [
    integration('shop', 'by-git', { workspace: undefined, invitedEmail: 'Edsger@example.com' }),
    integration('shop', 'granted', { workspace: 'other' }),
  ]);
  await eventually('the facade knows both integrations', async () =>
    (await list()).data.some(({ name }) => name === 'granted'),
  );
  const reply = await invite('edsger@example.com');
  expect(reply.status).toBe(200);
  expect(await read(reply.body.publicId)).toMatchObject({ name: 'by-git', invitedEmail: 'Edsger@example.com' });
  const granted = (await list('?status=Active')).data;
  expect(granted).toHaveLength(1);
  expect(granted[0]).toMatchObject({ name: 'granted', invitedEmail: null, expiresAt: null, status: 'Active' });
  expect(granted[0]?.receivingTenantPublicId).toMatch(/^ten_/);
});

test('lists have pages, and an unknown filter or an invalid cursor is refused', async () => {
  const all = (await list()).data.map(({ publicId }) => publicId);
  const paged: string[] = [];
  let query = '?limit=2';
  for (;;) {
    const { data, nextCursor } = await list(query);
    paged.push(...data.map(({ publicId }) => publicId));
    if (nextCursor === null) break;
    query = `?limit=2&cursor=${nextCursor}`;
  }
  expect(paged).toEqual(all);
  expect((await ada.get(`/waas/producer/${shop}/integrations?status=Open`)).status).toBe(422);
  expect((await ada.get(`/waas/producer/${shop}/integrations?cursor=%20`)).status).toBe(400);
});

test('an invalid request is refused without creating anything', async () => {
  const before = (await list()).data.length;
  for (const email of [
    '',
    'nobody',
    'a@b@c',
    'a b@example.com',
    'x@example.com\r\nBcc: y@example.com',
    `${'a'.repeat(251)}@b.c`,
  ]) {
    const reply: Problem = await ada.post('/waas/integrations', { producerTenantPublicId: shop, email });
    expect(reply.status, email).toBe(422);
    expect(reply.body.errors?.map(({ pointer }) => pointer)).toContain('/email');
    if (email !== '') expect(JSON.stringify(reply.body)).not.toContain(email);
  }
  expect((await list()).data).toHaveLength(before);
});

test('a foreign workspace has the same response as a missing one', async () => {
  const publicId = (await list()).data[0]?.publicId;
  for (const tenant of [shop, 'ten_00000000000000000000']) {
    const replies = await Promise.all([
      eve.post('/waas/integrations', { producerTenantPublicId: tenant, email: 'x@example.com' }),
      eve.get(`/waas/producer/${tenant}/integrations`),
      eve.get(`/waas/producer/${tenant}/integrations/${publicId}`),
      eve.post(`/waas/producer/${tenant}/integrations/${publicId}/revoke`),
    ]);
    for (const { status, body } of replies) {
      expect(status).toBe(403);
      expect(body).toEqual(replies[0].body);
    }
  }
  const unknown = await revoke('int_00000000000000000000');
  expect(unknown.status).toBe(404);
  expect(unknown.body).toMatchObject({ code: 'unknown_resource' });
  expect((await ada.get(`/waas/producer/${shop}/integrations/int_00000000000000000000`)).status).toBe(404);
});

test('a paused workspace cannot invite, but can revoke', async () => {
  const { publicId } = (await list('?status=Pending')).data[0] as Entry;
  const annotate = (value: string) =>
    kubectl(world.installation.cluster, ['annotate', 'workspace', 'shop', `sluice.dev/paused${value}`]);
  await annotate('=true');
  const reply = await eventually('the facade has received the pause', async () => {
    const reported: Problem = await ada.post('/waas/integrations', {
      producerTenantPublicId: shop,
      email: 'p@example.com',
    });
    return reported.status === 409 && reported;
  });
  expect(reply.value.body.code).toBe('workspace_paused');
  expect((await revoke(publicId)).status).toBe(204);
  expect((await list('?status=Revoked')).data.map(each => (each as Entry).publicId)).toContain(publicId);
  await annotate('-');
});

test('addresses are not part of the log, names, or labels', async () => {
  const text = JSON.stringify(await sluice.logLines());
  expect(text).toContain('inviteIntegration');
  expect(text.toLowerCase()).not.toContain('@example.com');
  const metadata = await inCluster([
    'get',
    'intg',
    '-o',
    'jsonpath={.items[*].metadata.name}{.items[*].metadata.labels}',
  ]);
  expect(metadata.toLowerCase()).not.toContain('example');
});
