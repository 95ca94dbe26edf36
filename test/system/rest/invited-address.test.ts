import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import type { Claims } from '../../support/issuer.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { createRestClient, type RestClient } from '../support/rest-client.ts';
import { accept, codeOf, decline, type InvitationWorld, openInvitationWorld } from './support/invitation-world.ts';

let opened: InvitationWorld;
let strict: Sluice;

beforeAll(async () => {
  opened = await openInvitationWorld({ replicas: 1 });
  strict = await opened.startFacade({ SLUICE_INVITATION_REQUIRE_EMAIL: 'true' });
});
afterAll(() => opened?.stop());

const as = async (claims: Claims): Promise<RestClient> =>
  createRestClient(strict.facadeUrl, await opened.world.issuer.token(claims));

test('only a caller with the invited address can answer if this is required by the operator', async () => {
  const { name, token } = await opened.invite();
  const { invitedEmail } = await opened.specOf('intg', name, 'shop');
  const email = invitedEmail as string;
  const others: Claims[] = [
    { sub: 'grace' },
    { sub: 'grace', email },
    { sub: 'grace', email, email_verified: false },
    { sub: 'grace', email: 'grace@example.com', email_verified: true },
  ];
  for (const claims of others) {
    const grace = await as(claims);
    for (const reply of [await accept(token, grace), await decline(token, grace)]) {
      expect([reply.status, codeOf(reply)]).toEqual([403, 'invitation_email_mismatch']);
      expect(JSON.stringify(reply.body)).not.toContain(email);
    }
  }
  // This did not create a workspace or an account.
  expect(await opened.inCluster(['get', 'workspaces', '-o', 'name'])).not.toContain('partner-');
  const invited = await as({ sub: 'grace', email: email.toUpperCase(), email_verified: true });
  const accepted = await accept(token, invited);
  expect(accepted.status, JSON.stringify(accepted.body)).toBe(200);
  // Repeating the call does not change anything, so it does not require the address.
  expect((await accept(token, await as({ sub: 'grace' }))).body).toEqual(accepted.body);
});

test('a refusal does not contain data of the producer', async () => {
  const { name, token } = await opened.invite();
  const manager = '--field-manager=acme-secret-gitops';
  const held = '{"spec":{"declined":false}}';
  await opened.inCluster(['patch', 'intg', name, '-n', 'shop', '--type=merge', manager, '-p', held]);
  const grace = await opened.as('grace');
  const refused = await decline(token, grace);
  expect([refused.status, codeOf(refused)]).toEqual([409, 'field_managed']);
  expect(JSON.stringify(refused.body)).not.toContain('acme-secret-gitops');
});

test('an address can be invited once per day, and the response contains the time of the next invitation', async () => {
  const { ada, shop } = opened;
  const email = 'again@example.com';
  const invite = (address: string) =>
    ada.post<{ publicId: string; detail: string }>('/waas/integrations', {
      producerTenantPublicId: shop,
      email: address,
    });
  const first = await invite(email);
  expect(first.status).toBe(201);
  expect((await invite(email.toUpperCase())).status).toBe(200);
  await eventually('the email is sent', async () => opened.mail.received.some(({ to }) => to.includes(email)));
  expect((await ada.post(`/waas/producer/${shop}/integrations/${first.body.publicId}/revoke`)).status).toBe(204);
  const refused = await invite(email.toUpperCase());
  expect([refused.status, codeOf(refused)]).toEqual([409, 'mail_limit_reached']);
  const time = /after (\S+Z)\./.exec(refused.body.detail)?.[1] ?? '';
  expect(Math.abs(Date.parse(time) - Date.now() - 24 * 3_600_000)).toBeLessThan(300_000);
  expect((await invite('another@example.com')).status).toBe(201);
});

test('an account can send a limited number of invitations per day', async () => {
  const { ada, shop, inCluster } = opened;
  const limit = (most: number) =>
    inCluster([
      'patch',
      'account',
      'shop',
      '--type=merge',
      '-p',
      `{"spec":{"limits":{"invitationMailsPerDay":${most}}}}`,
    ]);
  await limit(1);
  let n = 0;
  const invite = async () =>
    ada.post<{ detail: string }>('/waas/integrations', {
      producerTenantPublicId: shop,
      email: `many-${n++}@example.com`,
    });
  await eventually('the facade knows the limit', async () => codeOf(await invite()) === 'mail_limit_reached');
  expect((await invite()).body.detail).toMatch(
    /^The account acc_\w+ has sent \d+ invitations in the last 24 hours\. Its limit invitationMailsPerDay is 1\. .*Ask the operator of this Sluice to raise invitationMailsPerDay for account acc_\w+\.$/,
  );
  const account = publicId('Account', '', 'shop');
  const shown = async () => {
    const { body } = await ada.get<{ limits: Record<string, object> }>(`/waas/accounts/${account}/limits`);
    return body.limits['invitationMailsPerDay'];
  };
  // Mails that were reserved before the limit may still be on their way.
  const isExact = async () => {
    const sent = Number(await opened.world.installation.redis.command('ZCARD', accountKeys(account).mails));
    return isDeepStrictEqual(await shown(), { limit: 1, used: sent });
  };
  await eventually('the facade shows what was sent', isExact);
  await limit(1_000);
  await eventually('the facade knows the limit', async () => (await invite()).status === 201);
});
