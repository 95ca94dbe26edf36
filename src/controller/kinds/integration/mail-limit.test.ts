import { expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Store } from '../../../kube/store.ts';
import type { MailHold } from '../../../record/mail-reader.ts';
import type { Cached } from '../../caches/caches.ts';
import { createMailLimit } from './mail-limit.ts';

const DAY_MS = 86_400_000;
const account = (invitationMailsPerDay: number) =>
  objectOf<'Account'>(
    'main',
    { plan: 'Free', includedTokens: 0, owners: [], limits: { invitationMailsPerDay } },
    { namespace: undefined },
  );

test('an account that has sent all of its emails is known until its time, or until its limit changes', async () => {
  const workspace = objectOf<'Workspace'>('acme', { account: 'main' }, { namespace: undefined });
  const { context } = createTestContext({ Workspace: [workspace], Account: [account(5)] });
  const clock = { ms: 0 };
  let hold: MailHold | undefined = { by: 'account', untilMs: DAY_MS };
  const mails = { reserve: async () => hold, release: async () => undefined } as unknown as typeof context.mails;
  const limit = createMailLimit({ ...context, mails, nowMs: () => clock.ms, fence: () => 1 });
  const integration: Cached<'Integration'> = objectOf('globex', { invitedEmail: 'ada@example.com' });

  expect(limit.known(integration)).toBeUndefined();
  expect(await limit.reserve(integration)).toEqual(hold);
  clock.ms = DAY_MS - 1;
  expect(limit.known(integration)).toEqual(hold);
  const accounts = context.caches.Account.store as unknown as Store<object>;
  accounts.set('main', account(6));
  expect(limit.known(integration)).toBeUndefined();
  accounts.set('main', account(5));
  clock.ms = DAY_MS;
  expect(limit.known(integration)).toBeUndefined();
  // The limit of an address does not concern other addresses.
  hold = { by: 'address', untilMs: 2 * DAY_MS };
  expect(await limit.reserve(integration)).toEqual(hold);
  expect(limit.known(integration)).toBeUndefined();
});
