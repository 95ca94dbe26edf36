import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_VERSION } from '../../../src/api/group-version.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { receivingWorkspaceName } from '../../../src/core/ids/invitation-names.ts';
import { eventually } from '../support/deadline.ts';
import type { Reply, RestClient } from '../support/rest-client.ts';
import { apply, conditionOf } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import {
  type Accepted,
  accept,
  codeOf,
  decline,
  type InvitationWorld,
  openInvitationWorld,
} from './support/invitation-world.ts';

let opened: InvitationWorld;
let world: InvitationWorld['world'];
let shop: string;
let ada: InvitationWorld['ada'];
let as: InvitationWorld['as'];
let invite: InvitationWorld['invite'];
let inCluster: InvitationWorld['inCluster'];
let specOf: InvitationWorld['specOf'];
let makeReceiver: InvitationWorld['makeReceiver'];

beforeAll(async () => {
  opened = await openInvitationWorld();
  ({ world, shop, ada, as, invite, inCluster, specOf, makeReceiver } = opened);
});
afterAll(() => opened?.stop());

test('accepting an invitation creates a free account, and returns the same response when repeated', async () => {
  const { id, name, token } = await invite();
  const grace = await as('grace');
  const first = expectDeclared('acceptInvitation', await accept(token, grace));
  expect(first.status, JSON.stringify(first.body)).toBe(200);
  expect(first.body).toMatchObject({ integrationPublicId: id, producerTenantPublicId: shop, status: 'Active' });
  const { workspace, invitedEmail } = await specOf('intg', name, 'shop');
  expect(invitedEmail).toBe('partner-1@example.com');
  expect(first.body.workspacePublicId).toBe(tenantId(workspace as string));
  const { account } = await specOf('workspace', workspace as string);
  expect(first.body.accountPublicId).toBe(publicId('Account', '', account as string));
  expect(await specOf('account', account as string)).toEqual({
    owners: [{ issuer: world.issuer.url, subject: 'grace', role: 'Owner' }],
    plan: 'Free',
    includedTokens: 10_000,
  });
  // All changes have been applied when the call returns.
  const { cluster } = world.installation;
  expect(await conditionOf(cluster, `intg/${name}`, 'shop', 'Accepted')).toBe('True/InvitationAccepted');
  expect(await conditionOf(cluster, `workspace/${workspace as string}`, undefined)).toBe('True/NamespaceReady');
  await inCluster(['get', 'namespace', workspace as string]);

  const version = () => inCluster(['get', 'intg', name, '-n', 'shop', '-o', 'jsonpath={.metadata.resourceVersion}']);
  const before = await version();
  for (const facade of [0, 1, 2]) {
    const again = await accept(token, await as('grace', facade));
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
  }
  const named = await accept(token, grace, first.body.accountPublicId);
  expect(named.body).toEqual(first.body);
  expect(await version()).toBe(before);

  for (const refused of [await accept(token, await as('eve', 1)), await decline(token, await as('eve', 2))]) {
    expect(refused.status).toBe(409);
    expect(codeOf(refused)).toBe('invitation_used');
  }
  expect((await specOf('intg', name, 'shop'))['workspace']).toBe(workspace);
  const seen = await ada.get(`/waas/producer/${shop}/integrations/${id}`);
  expect(seen.body).toMatchObject({ status: 'Active', receivingTenantPublicId: first.body.workspacePublicId });
});

test('a second invitation is accepted for the same free account, in another workspace', async () => {
  const grace = await as('grace', 1);
  const second = await accept((await invite()).token, grace);
  expect(second.status, JSON.stringify(second.body)).toBe(200);
  const accounts = await grace.get<{ data: { publicId: string; plan: string; role: string }[] }>('/waas/accounts');
  expect(accounts.body.data).toMatchObject([{ publicId: second.body.accountPublicId, plan: 'Free', role: 'Owner' }]);
  const workspaces = await grace.get<{ data: { publicId: string }[] }>('/waas/workspaces');
  expect(workspaces.body.data).toHaveLength(2);
  expect(workspaces.body.data.map(each => each.publicId)).toContain(second.body.workspacePublicId);
});

test('the caller can choose an account that they own or administer, and no other account', async () => {
  const owners = [
    { issuer: world.issuer.url, subject: 'barbara', role: 'Owner' },
    { issuer: world.issuer.url, subject: 'carl', role: 'Admin' },
  ];
  const paying = { apiVersion: API_VERSION, kind: 'Account', metadata: { name: 'paying' } };
  await apply(world.installation.cluster, [{ ...paying, spec: { owners, plan: 'Metered' } }]);
  const id = publicId('Account', '', 'paying');
  const { token } = await invite();
  for (const foreign of [id, 'acc_00000000000000000000']) {
    const refused = await accept(token, await as('eve'), foreign);
    expect(refused.status).toBe(403);
    expect(codeOf(refused)).toBe('forbidden');
  }
  const carl = await as('carl', 2);
  const accepted = await accept(token, carl, id);
  expect(accepted.status, JSON.stringify(accepted.body)).toBe(200);
  expect(accepted.body.accountPublicId).toBe(id);
  // Another owner of the account repeats the call, and receives the same response.
  expect((await accept(token, await as('barbara', 1))).body).toEqual(accepted.body);
  // The same owner uses a different account. The invitation has already been accepted for another account.
  const free = await accept((await invite()).token, carl);
  expect(free.status).toBe(200);
  const elsewhere = await accept(token, carl, free.body.accountPublicId);
  expect(elsewhere.status).toBe(409);
  expect(codeOf(elsewhere)).toBe('invitation_used');
});

test('requires an account if the caller has a free account or cannot create one', async () => {
  const existing = { apiVersion: API_VERSION, kind: 'Account', metadata: { name: 'dora-free' } };
  const owners = [{ issuer: world.issuer.url, subject: 'dora', role: 'Owner' }];
  await apply(world.installation.cluster, [{ ...existing, spec: { owners, plan: 'Free' } }]);
  const { token } = await invite();
  const dora = await as('dora');
  await eventually(
    'the facade knows the account',
    async () => (await dora.get<{ data: unknown[] }>('/waas/accounts')).body.data.length === 1,
  );
  const unnamed = await accept(token, dora);
  expect(unnamed.status).toBe(409);
  const id = publicId('Account', '', 'dora-free');
  expect(unnamed.body).toMatchObject({ code: 'free_account_exists', detail: expect.stringContaining(id) });
  expect((await accept(token, dora, id)).status).toBe(200);

  const emil = await as('emil');
  const own = (await accept((await invite()).token, emil)).body.accountPublicId;
  const list = JSON.parse(await inCluster(['get', 'account', '-o', 'json'])) as {
    items: { metadata: { name: string } }[];
  };
  const name = list.items.find(({ metadata }) => publicId('Account', '', metadata.name) === own)?.metadata
    .name as string;
  await inCluster(['patch', 'account', name, '--type=merge', '-p', '{"spec":{"plan":"Metered"}}']);
  const second = (await invite()).token;
  const refused = await accept(second, emil);
  expect(refused.body).toMatchObject({ code: 'free_account_exists', detail: expect.stringContaining(own) });
  expect((await accept(second, emil, own)).status).toBe(200);
});

test('nothing is granted to a workspace that cannot be created; when this is possible, the same call succeeds', async () => {
  const { name, token } = await invite();
  const receiver = receivingWorkspaceName('shop', name, 'paying');
  await inCluster(['create', 'namespace', receiver]);
  const barbara = await as('barbara');
  const stuck = await accept(token, barbara, publicId('Account', '', 'paying'));
  expect([stuck.status, codeOf(stuck)]).toEqual([409, 'not_reconcilable']);
  expect(Object.keys(await specOf('intg', name, 'shop'))).toEqual(['invitedEmail']);
  await inCluster(['label', 'namespace', receiver, `sluice.dev/workspace=${receiver}`]);
  const accepted = await eventually('the namespace is adopted', async () => {
    const reply = await accept(token, barbara, publicId('Account', '', 'paying'));
    return reply.status === 200 && reply;
  });
  expect(accepted.value.body.workspacePublicId).toBe(tenantId(receiver));
});

test('only one of many callers can accept a token concurrently, using three facades', async () => {
  const people = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'];
  for (let round = 0; round < 4; round++) {
    const { name, token } = await invite();
    // Each caller sends two concurrent requests, using two facades.
    const calls = people.flatMap((sub, n) => [n % 3, (n + 1) % 3].map(facade => ({ sub, facade })));
    const clients = await Promise.all(calls.map(({ sub, facade }) => as(sub, facade)));
    const replies = await Promise.all(clients.map(client => accept(token, client)));
    const reported = replies.map((reply, n) => `${calls[n]?.sub} ${reply.status} ${codeOf(reply) ?? ''}`);
    const won = new Set(calls.filter((_, n) => replies[n]?.status === 200).map(({ sub }) => sub));
    expect([...won], reported.join(', ')).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(2);
    const lost = replies.filter(({ status }) => status !== 200);
    expect(new Set(lost.map(codeOf))).toEqual(new Set(['invitation_used']));
    const winner = replies.find(({ status }) => status === 200) as Reply<Accepted>;
    expect(tenantId((await specOf('intg', name, 'shop'))['workspace'] as string)).toBe(winner.body.workspacePublicId);
  }
});

test('only one of concurrent accept and decline calls takes effect', async () => {
  const clients = await Promise.all([0, 1, 2, 0, 1, 2].map(facade => as('barbara', facade)));
  const account = publicId('Account', '', 'paying');
  for (let round = 0; round < 8; round++) {
    const { name, token } = await invite();
    await makeReceiver(name, 'paying');
    // Accepting reads more data before it writes, so declining starts at various times.
    const accepting = accept(token, clients[0] as RestClient, account);
    const declining = clients.map(async (client, n) => {
      await delay(4 * n + round);
      return decline(token, client);
    });
    const [accepted, ...declined] = await Promise.all([accepting, ...declining]);
    const reported = [accepted, ...declined].map(({ status }) => status).join(' ');
    expect(['200 409 409 409 409 409 409', '409 200 200 200 200 200 200']).toContain(reported);
    const answered = Object.keys(await specOf('intg', name, 'shop')).toSorted();
    expect(answered, reported).toEqual(
      accepted.status === 200 ? ['invitedEmail', 'workspace'] : ['declined', 'invitedEmail'],
    );
  }
});

test('declining an invitation is final, and returns the same response when repeated', async () => {
  const { id, name, token } = await invite();
  const grace = await as('grace');
  for (const facade of [0, 1, 2]) {
    const reply = expectDeclared('declineInvitation', await decline(token, await as('grace', facade)));
    expect(reply.body).toEqual({ integrationPublicId: id, status: 'Declined' });
  }
  expect(await conditionOf(world.installation.cluster, `intg/${name}`, 'shop', 'Accepted')).toBe('False/Declined');
  const late = await accept(token, grace);
  expect([late.status, codeOf(late)]).toEqual([409, 'invitation_used']);
});

test('revoked, expired, unknown, and malformed tokens have different responses', async () => {
  const grace = await as('grace');
  const revoked = await invite();
  expect((await ada.post(`/waas/producer/${shop}/integrations/${revoked.id}/revoke`)).status).toBe(204);
  const expired = await invite();
  const past = '{"status":{"invitation":{"expiresAt":"2020-01-01T00:00:00Z"}}}';
  await inCluster(['patch', 'intg', expired.name, '-n', 'shop', '--subresource=status', '--type=merge', '-p', past]);
  const deleted = await invite();
  await inCluster(['delete', 'intg', deleted.name, '-n', 'shop']);
  const unknown = `sinv_${'x'.repeat(43)}`;
  for (const [token, status, code] of [
    [revoked.token, 409, 'invitation_used'],
    [expired.token, 410, 'invitation_expired'],
    [deleted.token, 404, 'unknown_invitation'],
    [unknown, 404, 'unknown_invitation'],
    ['sinv_short', 422, 'invalid_request'],
  ] as const) {
    for (const reply of [await accept(token, grace), await decline(token, grace)]) {
      expect([reply.status, codeOf(reply)]).toEqual([status, code]);
      expect(JSON.stringify(reply.body)).not.toContain(token);
    }
  }
});

test('invitations cannot be answered while the producer is paused', async () => {
  const { name, token } = await invite();
  const annotate = (value: string) => inCluster(['annotate', 'workspace', 'shop', `sluice.dev/paused${value}`]);
  const invited = { producerTenantPublicId: shop, email: 'partner-0@example.com' };
  const isPaused = async () => codeOf(await ada.post('/waas/integrations', invited)) === 'workspace_paused';
  const grace = await as('grace');
  await annotate('=true');
  try {
    await eventually('the facade has received the pause', isPaused);
    for (const reply of [await accept(token, grace), await decline(token, grace)]) {
      expect([reply.status, codeOf(reply)]).toEqual([409, 'workspace_paused']);
    }
  } finally {
    await annotate('-');
  }
  expect(Object.keys(await specOf('intg', name, 'shop'))).toEqual(['invitedEmail']);
  await eventually('the pause has ended', async () => !(await isPaused()));
  expect((await accept(token, grace)).status).toBe(200);
});

test('a call only succeeds after its change was applied, and can be repeated', async () => {
  const [first, second, third, fourth] = await Promise.all([invite(), invite(), invite(), invite()]);
  await makeReceiver(second.name, 'paying');
  const [grace, barbara] = await Promise.all([as('grace'), as('barbara', 1)]);
  const invited = { producerTenantPublicId: shop, email: 'partner-late@example.com' };
  const calls: readonly (() => Promise<Reply>)[] = [
    () => ada.post('/waas/integrations', invited),
    // The receiving workspace must be created.
    () => accept(first.token, grace),
    // The receiving workspace exists, and only the grant is missing.
    () => accept(second.token, barbara, publicId('Account', '', 'paying')),
    () => decline(third.token, grace),
    () => ada.post(`/waas/producer/${shop}/integrations/${fourth.id}/revoke`),
  ];
  await opened.controller.kill('SIGSTOP');
  try {
    const replies = await Promise.all(calls.map(call => call()));
    for (const reply of replies) {
      expect([reply.status, codeOf(reply)]).toEqual([503, 'not_in_force']);
      expect(reply.headers.get('retry-after')).toMatch(/^\d+$/);
    }
  } finally {
    await opened.controller.kill('SIGCONT');
  }
  for (const [n, call] of calls.entries()) {
    const done = n === 4 ? 204 : 200;
    await eventually(`call ${n} returns ${done}`, async () => (await call()).status === done);
  }
});

test('logs do not contain addresses or tokens', async () => {
  const logs = await Promise.all([opened.controller, ...opened.facades].map(each => each.logLines()));
  const text = JSON.stringify(logs);
  expect(text).toContain('acceptInvitation');
  expect(text).not.toMatch(/sinv_/);
  expect(text).not.toMatch(/partner-\d+@/);
});
