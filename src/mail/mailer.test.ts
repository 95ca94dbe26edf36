import { createServer, type Server, type Socket } from 'node:net';
import type { SMTPServerOptions } from 'smtp-server';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type MailServer, type ReceivedMail, startMailServer } from '../../test/support/mail/mail-server.ts';
import { createCertificate } from '../dataplane/dispatcher/testing/certificate.ts';
import type { InvitationMail } from './invitation-message.ts';
import { createInvitationMailer, type MailError, type MailerOptions } from './mailer.ts';

const mail: InvitationMail = {
  to: 'ada+sluice@partner.example',
  producer: 'acme',
  token: `sinv_${'A'.repeat(43)}`,
  expiresAt: '2026-12-05T17:23:00Z',
};

let server: MailServer;
beforeEach(async () => {
  server = await startMailServer();
});
afterEach(() => server.close());

const mailerFor = (port: number, more: Partial<MailerOptions> = {}) =>
  createInvitationMailer({
    server: { host: '127.0.0.1', port, secure: false },
    from: { name: 'Sluice', address: 'sluice@mail.example' },
    acceptUrl: undefined,
    ...more,
  });

async function failure(sending: Promise<void>): Promise<MailError> {
  const error = (await sending.then(
    () => undefined,
    (reason: unknown) => reason,
  )) as MailError;
  expect(error.name).toBe('MailError');
  // The text that a logger would print.
  const shown = JSON.stringify({ ...error, message: error.message, stack: error.stack, cause: error.cause });
  expect(shown).not.toContain('partner.example');
  expect(shown).not.toContain('sinv_');
  return error;
}

describe('a mail server', () => {
  test('receives the invitation for the single address, from the sender, as plain text', async () => {
    await mailerFor(server.port)(mail);
    expect(server.received).toHaveLength(1);
    const [{ from, to, headers, body }] = server.received as [ReceivedMail];
    expect(from).toBe('sluice@mail.example');
    expect(to).toEqual([mail.to]);
    expect(headers.get('to')).toBe(mail.to);
    expect(headers.get('from')).toBe('Sluice <sluice@mail.example>');
    expect(headers.get('subject')).toBe('Invitation to receive events from acme');
    expect(headers.get('auto-submitted')).toBe('auto-generated');
    expect(headers.get('content-type')).toMatch(/^text\/plain/);
    expect(body).toContain(`{"token": "${mail.token}"}`);
  });

  test('receives the same id if an email is sent again, and another id for another invitation', async () => {
    const send = mailerFor(server.port);
    for (const token of [mail.token, mail.token, `sinv_${'B'.repeat(43)}`]) await send({ ...mail, token });
    const [first, again, other] = server.received.map(({ headers }) => headers.get('message-id'));
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect(first).not.toContain('AAAA');
  });

  test.each([
    'a@b.example\r\nBcc: c@d.example',
    'a@b.example\nSubject: x',
    'a@b.example\r',
    'a@b.example, c@d.example',
    '"a@b.example" <c@d.example>',
    'a@b.example>\r\nRCPT TO:<c@d.example',
    '',
  ])('does not receive the address %j', async to => {
    expect(await failure(mailerFor(server.port)({ ...mail, to }))).toMatchObject({ code: 'EENVELOPE', refused: true });
    expect(server.received).toEqual([]);
  });

  test.each([
    [550, true],
    [451, false],
  ])('that responds with %i is only reported by this number', async (code, refused) => {
    server.refuseWith(code);
    const error = await failure(mailerFor(server.port)(mail));
    expect(error).toMatchObject({
      code: `${code}`,
      refused,
      unsent: false,
      message: `the mail server did not accept the email: ${code}`,
    });
  });

  test('is given time to check the message, because it would otherwise receive an accepted email again', async () => {
    const checksFor = (ms: number): SMTPServerOptions => ({
      onData: (stream, _session, answer) => void stream.resume().once('end', () => setTimeout(answer, ms)),
    });
    const slow = await startMailServer({ more: checksFor(600) });
    await mailerFor(slow.port, { stepTimeoutMs: 300, timeoutMs: 400 })(mail);
    const error = await failure(mailerFor(slow.port, { acceptTimeoutMs: 100 })(mail));
    expect(error).toMatchObject({ code: 'ETIMEDOUT', refused: false, unsent: false });
    await slow.close();
  });

  test('that does not respond to the recipient results in a timeout', async () => {
    const hanging = await startMailServer({ more: { onRcptTo: () => {} } });
    const error = await failure(mailerFor(hanging.port, { timeoutMs: 200 })(mail));
    expect(error).toMatchObject({ code: 'ETIMEDOUT', refused: false, unsent: false });
    await hanging.close();
  });

  const failing = (responseCode: number) => Object.assign(new Error('not now'), { responseCode });
  test.each<[string, SMTPServerOptions, boolean]>([
    ['connection', { onConnect: (_session, answer) => answer(failing(421)) }, true],
    ['sender', { onMailFrom: (_address, _session, answer) => answer(failing(451)) }, true],
    ['recipient', { onRcptTo: (_address, _session, answer) => answer(failing(421)) }, false],
    [
      'message',
      { onData: (stream, _session, answer) => void stream.resume().once('end', () => answer(failing(451))) },
      false,
    ],
  ])('that defers the %s counts as having received the address or not', async (_what, more, unsent) => {
    const deferring = await startMailServer({ more });
    const error = await failure(mailerFor(deferring.port)(mail));
    expect(error).toMatchObject({ code: expect.stringMatching(/^4/), refused: false, unsent });
    await deferring.close();
  });

  test('that requires a login receives it; a wrong login does not count as a refused recipient', async () => {
    const guarded = await startMailServer({ login: { user: 'relay', password: 'p@ss:word' } });
    const at = (password: string) =>
      mailerFor(guarded.port, {
        server: { host: '127.0.0.1', port: guarded.port, secure: false, credentials: { user: 'relay', password } },
      })(mail);
    await at('p@ss:word');
    expect(guarded.received).toHaveLength(1);
    expect(await failure(at('wrong'))).toMatchObject({ code: '535', refused: false, unsent: true });
    await guarded.close();
  });

  test('that is unreachable is reported', async () => {
    const { port } = server;
    await server.close();
    const error = await failure(mailerFor(port)(mail));
    expect(error).toMatchObject({ code: expect.stringMatching(/^E(CONNECTION|SOCKET)$/), unsent: true });
    server = await startMailServer();
  });

  test('with an untrusted certificate is refused', async () => {
    const tls = await startMailServer({ more: { secure: true, ...createCertificate({ dns: ['localhost'] }) } });
    const send = mailerFor(tls.port, { server: { host: 'localhost', port: tls.port, secure: true } });
    expect((await failure(send(mail))).refused).toBe(false);
    expect(tls.received).toEqual([]);
    await tls.close();
  });
});

describe('a server that does not respond', () => {
  let silent: Server;
  const sockets: Socket[] = [];
  async function listen(onSocket: (socket: Socket) => void): Promise<number> {
    silent = createServer(socket => {
      sockets.push(socket);
      socket.on('error', () => {});
      onSocket(socket);
    });
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve));
    return (silent.address() as { port: number }).port;
  }
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await new Promise(resolve => silent.close(resolve));
  });

  test('results in a timeout', async () => {
    const port = await listen(() => {});
    expect(await failure(mailerFor(port, { stepTimeoutMs: 50 })(mail))).toMatchObject({
      code: 'ETIMEDOUT',
      refused: false,
      unsent: false,
    });
  });

  test('results in a timeout even if it sends some data from time to time', async () => {
    let drip: NodeJS.Timeout | undefined;
    const port = await listen(socket => {
      drip = setInterval(() => socket.write('220-please hold the line\r\n'), 20);
    });
    const error = await failure(mailerFor(port, { stepTimeoutMs: 60_000, timeoutMs: 200 })(mail));
    clearInterval(drip);
    expect(error.code).toBe('ETIMEDOUT');
  });

  test('is disconnected immediately on a stop', async () => {
    const port = await listen(() => {});
    const stop = new AbortController();
    const sending = failure(mailerFor(port)(mail, stop.signal));
    stop.abort();
    expect((await sending).code).toBe('EABORT');
  });
});
