import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import { type MailServer, startMailServer } from '../../support/mail/mail-server.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { type Observer, observe } from '../support/observer.ts';
import { apply, integration, kubectl, type Manifest, tenant, waitForAll } from '../support/world.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** The time that the mail server takes for an email. */
let mailMs = 300;

let installed: Installation;
let observer: Observer;
let mail: MailServer;
let controller: Sluice;
/** The addresses in the order in which the server received them. */
const begun: string[] = [];

const invite = (workspace: string, name: string, address: string): Manifest =>
  integration(workspace, name, { workspace: undefined, invitedEmail: address });
const mailsTo = (address: string) => mail.received.filter(({ to }) => to.includes(address)).length;
const sent = (workspace: string, name: string, is: string) =>
  observer.until(['Integration', name, workspace, 'InvitationSent', is]);
const messageOf = (workspace: string, name: string) =>
  kubectl(installed.cluster, [
    'get',
    'intg',
    name,
    '-n',
    workspace,
    '-o',
    'jsonpath={.status.conditions[?(@.type=="InvitationSent")].message}',
  ]);

beforeAll(async () => {
  const more = {
    onMailFrom: (_address: unknown, _session: unknown, answer: () => void) => void setTimeout(answer, mailMs),
    onRcptTo: ({ address }: { readonly address: string }, _session: unknown, answer: () => void) => {
      begun.push(address);
      answer();
    },
  };
  [installed, mail] = await Promise.all([install(), startMailServer({ more })]);
  observer = observe(installed.cluster.kubeconfig);
  controller = await installed.start({
    role: 'controller',
    env: { SLUICE_SMTP_URL: `smtp://127.0.0.1:${mail.port}`, SLUICE_SMTP_FROM: 'sluice@example.org' },
  });
  const few = { plan: 'Metered', limits: { invitationMailsPerDay: 3 } };
  await apply(installed.cluster, [...tenant('shop'), ...tenant('loud'), ...tenant('quiet'), ...tenant('few', few)]);
  await waitForAll(installed.cluster, 'workspace', 'shop');
});
afterAll(async () => {
  await observer?.close();
  await installed?.stop();
  await mail?.close();
});

it('sends one email per day to an address, even after a deletion or with another leader', async () => {
  const address = 'victim@partner.example';
  await apply(installed.cluster, [invite('shop', 'first', address)]);
  await sent('shop', 'first', 'True/Sent');
  await kubectl(installed.cluster, [
    'patch',
    'intg',
    'first',
    '-n',
    'shop',
    '--type=merge',
    '-p',
    '{"spec":{"revoked":true}}',
  ]);
  await apply(installed.cluster, [invite('shop', 'second', address.toUpperCase())]);
  await sent('shop', 'second', 'False/AddressLimitReached');
  const message = await messageOf('shop', 'second');
  const until = /at (\S+Z)$/.exec(message)?.[1] ?? message;
  expect(Math.abs(Date.parse(until) - Date.now() - DAY_MS)).toBeLessThan(300_000);

  await kubectl(installed.cluster, ['delete', 'intg', 'first', 'second', '-n', 'shop']);
  await controller.restart();
  await apply(installed.cluster, [invite('shop', 'third', address), invite('quiet', 'other', address)]);
  // Another workspace can invite the same person.
  await sent('quiet', 'other', 'True/Sent');
  await sent('shop', 'third', 'False/AddressLimitReached');
  expect(mailsTo(address) + mailsTo(address.toUpperCase())).toBe(2);
  expect(await observer.conditionOf('Integration', 'third', 'shop')).toBe('True/Pending');
});

it('sends a delayed invitation automatically as soon as the limit allows it', async () => {
  const { mails } = accountKeys(publicId('Account', '', 'shop'));
  await apply(installed.cluster, [invite('shop', 'soon-first', 'soon@partner.example')]);
  await sent('shop', 'soon-first', 'True/Sent');
  const all = (await installed.redis.command('ZRANGE', mails, 0, -1)) as string[];
  const newest = all.at(-1) as string;
  await installed.redis.command('ZADD', mails, Date.now() - DAY_MS + 20_000, newest);
  await apply(installed.cluster, [invite('shop', 'soon-second', 'soon@partner.example')]);
  await sent('shop', 'soon-second', 'False/AddressLimitReached');
  await sent('shop', 'soon-second', 'True/Sent');
  expect(mailsTo('soon@partner.example')).toBe(2);
});

it('sends up to the maximum number of emails of an account, and the others once its limit is raised', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  await apply(
    installed.cluster,
    names.map(name => invite('few', name, `${name}@few.example`)),
  );
  const held = () =>
    Promise.all(names.map(name => observer.conditionOf('Integration', name, 'few', 'InvitationSent'))).then(all =>
      all.toSorted((x, y) => (x < y ? -1 : 1)),
    );
  const expected = [...Array(2).fill('False/AccountLimitReached'), ...Array(3).fill('True/Sent')];
  await eventually('three emails are sent and two are waiting', async () => (await held()).join() === expected.join());
  await delay(1_000);
  expect(mail.received.filter(({ to }) => to[0]?.endsWith('@few.example'))).toHaveLength(3);
  const more = '{"spec":{"limits":{"invitationMailsPerDay":10}}}';
  await kubectl(installed.cluster, ['patch', 'account', 'few', '--type=merge', '-p', more]);
  for (const name of names) await sent('few', name, 'True/Sent');
  expect(mail.received.filter(({ to }) => to[0]?.endsWith('@few.example'))).toHaveLength(5);
});

it('sends the only invitation of a workspace before hundreds of invitations of another workspace', async () => {
  // Only a few emails begin while the controller notices another invitation, even on a busy machine.
  mailMs = 2_000;
  await apply(
    installed.cluster,
    Array.from({ length: 300 }, (_, n) => invite('loud', `loud-${n}`, `loud-${n}@partner.example`)),
  );
  await eventually('emails are being sent', async () => begun.filter(to => to.startsWith('loud')).length > 5);
  await apply(installed.cluster, [invite('quiet', 'one', 'quiet@partner.example')]);
  await observer.until(['Integration', 'one', 'quiet', 'Ready', 'True/Pending']);
  const before = begun.length;
  await eventually('the email is sent', async () => begun.includes('quiet@partner.example'), { everyMs: 20 });
  const passed = begun.indexOf('quiet@partner.example') - before;
  expect(begun.filter(to => to.startsWith('loud')).length).toBeLessThan(250);
  expect(passed).toBeLessThanOrEqual(20);
});
