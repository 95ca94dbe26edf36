import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PAUSED_ANNOTATION } from '../../../src/api/well-known.ts';
import { hashInvitationToken } from '../../../src/core/ids/invitation.ts';
import { freePort } from '../../support/free-port.ts';
import { type MailServer, type ReceivedMail, startMailServer } from '../../support/mail/mail-server.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { type Observer, observe } from '../support/observer.ts';
import { apply, integration, kubectl, type Manifest, tenant, waitForAll } from '../support/world.ts';

const PRODUCER = 'shop';
const LOGIN = { user: 'relay', password: 'p@ss' };

interface Invited {
  readonly metadata: { readonly uid: string };
  readonly status?: {
    readonly invitation?: {
      readonly tokenHash: string;
      readonly issuedAt: string;
      readonly expiresAt: string;
      readonly sentAt?: string;
    };
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}

let installed: Installation;
let observer: Observer;
let mailPort: number;
let mail: MailServer;
let controller: Sluice;
/** All emails, including emails accepted by a server that has been closed since. */
const taken: ReceivedMail[] = [];
const logs: string[] = [];

const addressOf = (partner: string) => `${partner}@partner.example`;
const invite = (partner: string, spec: object = {}): Manifest =>
  integration(PRODUCER, partner, { workspace: undefined, invitedEmail: addressOf(partner), ...spec });
/** Runs kubectl. The arguments in `more` may contain spaces. */
const run = (command: string, ...more: string[]) => kubectl(installed.cluster, [...command.split(' '), ...more]);
const read = async (partner: string): Promise<Invited> =>
  JSON.parse(await run(`get intg ${partner} -n ${PRODUCER} -o json`)) as Invited;
const patch = (what: string, fields: object) =>
  run(`patch ${what} -n ${PRODUCER} --type=merge -p`, JSON.stringify(fields));
const mailsTo = (partner: string) => [...taken, ...mail.received].filter(({ to }) => to.includes(addressOf(partner)));
const tokensIn = (text: string) => text.match(/sinv_[A-Za-z0-9_-]{43}/g) ?? [];
const until = (partner: string, type: string, is: string) =>
  observer.until(['Integration', partner, PRODUCER, type, is]);

const withMail = () => ({
  SLUICE_SMTP_URL: `smtp://${LOGIN.user}:${encodeURIComponent(LOGIN.password)}@127.0.0.1:${mailPort}`,
  SLUICE_SMTP_FROM: 'Shop Events <events@shop.example>',
  SLUICE_INVITATION_URL: 'https://partners.shop.example/invitation',
});

async function startController(env: Record<string, string>): Promise<Sluice> {
  const started = await installed.start({ role: 'controller', env: { SLUICE_LOG_LEVEL: 'trace', ...env } });
  logs.push(started.log);
  return started;
}

async function closeMailServer(): Promise<void> {
  taken.push(...mail.received);
  await mail.close();
}

const openMailServer = async () => {
  mail = await startMailServer({ port: mailPort, login: LOGIN });
};

async function secretOf(
  partner: string,
): Promise<{ type: string; data?: { token?: string }; metadata: object } | undefined> {
  const { code, stdout } = await installed.cluster.kubectl([
    'get',
    'secret',
    `${partner}-invitation`,
    '-n',
    PRODUCER,
    '-o',
    'json',
  ]);
  return code === 0 ? JSON.parse(stdout) : undefined;
}

const tokenInSecret = async (partner: string) =>
  Buffer.from((await secretOf(partner))?.data?.token ?? '', 'base64').toString();

beforeAll(async () => {
  [installed, mailPort] = await Promise.all([install(), freePort()]);
  observer = observe(installed.cluster.kubeconfig);
  await openMailServer();
  controller = await startController(withMail());
  await apply(installed.cluster, tenant(PRODUCER));
  await waitForAll(installed.cluster, 'workspace', PRODUCER);
});

afterAll(async () => {
  await observer?.close();
  await installed?.stop();
  await mail?.close();
});

it('sends an invitation that was created with kubectl once, with the token for its hash', async () => {
  await apply(installed.cluster, [invite('ada')]);
  await until('ada', 'Ready', 'True/Pending');
  // This is written along with the first Ready condition, even if the email was not sent.
  const committed = (await read('ada')).status?.invitation;
  expect(committed?.tokenHash).toMatch(/^[0-9a-f]{64}$/);
  await until('ada', 'InvitationSent', 'True/Sent');

  const [received, ...more] = mailsTo('ada');
  expect(more).toEqual([]);
  expect(received?.from).toBe('events@shop.example');
  expect(received?.headers.get('subject')).toBe(`Invitation to receive events from ${PRODUCER}`);
  const [token = ''] = tokensIn(received?.body ?? '');
  expect(received?.body).toContain(`https://partners.shop.example/invitation#token=${token}`);

  const { invitation } = (await read('ada')).status ?? {};
  expect(invitation).toEqual({ ...committed, sentAt: expect.any(String) });
  expect(hashInvitationToken(token)).toBe(invitation?.tokenHash);
  const lifetimeMs = Date.parse(invitation?.expiresAt ?? '') - Date.parse(invitation?.issuedAt ?? '');
  expect(lifetimeMs).toBe(14 * 24 * 60 * 60 * 1_000);
  expect(await controller.metric('sluice_controller_invitation_mails_total', { result: 'sent' })).toBe(1);
});

it('does not send emails for direct grants and revoked integrations', async () => {
  await apply(installed.cluster, [integration(PRODUCER, 'bob'), invite('eve', { revoked: true })]);
  await until('bob', 'Accepted', 'True/DirectGrant');
  await until('eve', 'Accepted', 'False/Revoked');
  expect((await read('bob')).status?.invitation).toBeUndefined();
  expect((await read('eve')).status?.invitation).toBeUndefined();
});

it('reports an email that is refused by the mail server, and sends it with the same token when it is accepted', async () => {
  mail.refuseWith(451);
  await apply(installed.cluster, [invite('cleo')]);
  await until('cleo', 'InvitationSent', 'False/SmtpFailed');
  const refused = await read('cleo');
  expect(refused.status?.conditions?.find(({ type }) => type === 'InvitationSent')?.message).toBe(
    'the mail server did not accept the invitation (451). The controller will retry',
  );
  expect(await observer.conditionOf('Integration', 'cleo', PRODUCER)).toBe('True/Pending');

  // The mail server is not available, and the process that has tried to send the email ends.
  await closeMailServer();
  await apply(installed.cluster, [invite('dora')]);
  await until('dora', 'InvitationSent', 'False/SmtpFailed');
  const before = { cleo: (await read('cleo')).status?.invitation, dora: (await read('dora')).status?.invitation };
  await controller.restart();
  await openMailServer();
  for (const partner of ['cleo', 'dora'] as const) {
    await until(partner, 'InvitationSent', 'True/Sent');
    expect((await read(partner)).status?.invitation).toEqual({ ...before[partner], sentAt: expect.any(String) });
    const tokens = mailsTo(partner).flatMap(({ body }) => tokensIn(body));
    expect(tokens.map(hashInvitationToken)).toEqual([before[partner]?.tokenHash]);
  }
});

it('does not send emails while the workspace is paused, and sends them after the pause', async () => {
  const pause = (value: string) => run(`annotate --overwrite workspace ${PRODUCER} ${PAUSED_ANNOTATION}=${value}`);
  const turns = () =>
    controller.metric('controller_runtime_reconcile_total', { controller: 'invitation', result: 'success' });
  mail.refuseWith(451);
  await apply(installed.cluster, [invite('hal')]);
  await until('hal', 'InvitationSent', 'False/SmtpFailed');
  const before = await turns();
  await pause('true');
  const all = (await run(`get intg -n ${PRODUCER} -o name`)).trim().split('\n').length;
  // Each of them is processed immediately, and no work is due anymore.
  await eventually('the controller has seen the pause', async () => (await turns()) >= before + all);
  mail.refuseWith(undefined);
  await delay(1_000);
  expect(mailsTo('hal')).toEqual([]);
  await pause('false');
  await until('hal', 'InvitationSent', 'True/Sent');
  expect(mailsTo('hal')).toHaveLength(1);
});

it('does not send any email twice after restarts', async () => {
  const count = mailsTo('ada').length + mailsTo('cleo').length + mailsTo('dora').length;
  await controller.stop();
  controller = await startController(withMail());
  await apply(installed.cluster, [invite('fay')]);
  // The endpoint has started and is working, and it received all previous emails.
  await until('fay', 'InvitationSent', 'True/Sent');
  await delay(1_000);
  expect(mailsTo('ada').length + mailsTo('cleo').length + mailsTo('dora').length).toBe(count);
  expect(mailsTo('fay')).toHaveLength(1);
  expect([...mailsTo('bob'), ...mailsTo('eve')]).toEqual([]);
});

it('sends another invitation if the status was lost', async () => {
  const before = (await read('fay')).status?.invitation;
  // The new token is issued in another second, as after a restore.
  await delay(1_100);
  await patch('intg fay --subresource=status', { status: { invitation: null } });
  await eventually('a second email is sent', async () => mailsTo('fay').length === 2);
  await until('fay', 'InvitationSent', 'True/Sent');
  const after = (await read('fay')).status?.invitation;
  expect(after?.tokenHash).not.toBe(before?.tokenHash);
  expect(tokensIn(mailsTo('fay')[1]?.body ?? '').map(hashInvitationToken)).toEqual([after?.tokenHash]);
});

it('writes the token to a Secret without a mail server, restores the Secret, and empties it after use', async () => {
  await controller.stop();
  controller = await startController({});
  await apply(installed.cluster, [invite('gil')]);
  await until('gil', 'InvitationSent', 'True/SecretWritten');
  const { metadata, status } = await read('gil');
  expect(await secretOf('gil')).toMatchObject({
    type: 'sluice.dev/invitation',
    metadata: { ownerReferences: [{ kind: 'Integration', name: 'gil', uid: metadata.uid }] },
  });
  const token = await tokenInSecret('gil');
  expect(hashInvitationToken(token)).toBe(status?.invitation?.tokenHash);

  await run(`delete secret gil-invitation -n ${PRODUCER}`);
  await eventually('the Secret is written again', async () => (await tokenInSecret('gil')) === token);
  const wrong = Buffer.from('sinv_another').toString('base64');
  await patch('secret gil-invitation', { data: { token: wrong } });
  await eventually('the Secret is corrected', async () => (await tokenInSecret('gil')) === token);
  expect((await read('gil')).status?.invitation).toEqual(status?.invitation);

  await patch('intg gil', { spec: { workspace: 'gil' } });
  // The producer granted access directly, so there was no acceptance.
  await until('gil', 'Accepted', 'True/DirectGrant');
  await eventually('the Secret is empty', async () => (await secretOf('gil'))?.data === undefined);
  expect(await observer.conditionOf('Integration', 'gil', PRODUCER, 'InvitationSent')).toBe('True/SecretWritten');

  // Emails that have already been sent are not changed.
  expect(await observer.conditionOf('Integration', 'ada', PRODUCER, 'InvitationSent')).toBe('True/Sent');
  expect(await secretOf('ada')).toBeUndefined();
});

it('does not write the address and the token to logs, Events, statuses, or metrics', async () => {
  const written = (await Promise.all(logs.map(log => readFile(log, 'utf8')))).join('\n');
  const statuses = await run('get intg -A -o', 'jsonpath={.items[*].status}');
  const events = await run('get events -A -o json');
  const metrics = await (await fetch(`${controller.opsUrl}/metrics`)).text();
  // Makes sure that these are the real address and token.
  expect(written).toContain(`${PRODUCER}/cleo`);
  expect(statuses).toContain('InvitationSent');
  expect(events).toContain('InvitationSmtpFailed');
  for (const text of [written, statuses, events, metrics]) {
    expect(text).not.toContain('partner.example');
    expect(tokensIn(text)).toEqual([]);
    expect(text).not.toContain(LOGIN.password);
    expect(text).not.toContain(encodeURIComponent(LOGIN.password));
  }
});
