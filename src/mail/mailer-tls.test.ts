import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { type MailServer, startMailServer } from '../../test/support/mail/mail-server.ts';
import { createCertificate } from '../dataplane/dispatcher/testing/certificate.ts';
import type { InvitationMail } from './invitation-message.ts';
import { createInvitationMailer, type MailError } from './mailer.ts';

const mail: InvitationMail = {
  to: 'ada@partner.example',
  producer: 'acme',
  token: `sinv_${'A'.repeat(43)}`,
  expiresAt: '2026-12-05T17:23:00Z',
};
const credentials = { user: 'relay', password: 'secret' };
/** A name for this machine that is not a loopback address, like a host in the network. */
const ELSEWHERE = '0.0.0.0';
const LOOPBACK = ['127.0.0.1', 'localhost', 'LOCALHOST'];

let server: MailServer;
const trusted = getCACertificates('default');
afterEach(async () => {
  setDefaultCACertificates(trusted);
  await server.close();
});

/**
 * A mail server that records each login, and whether it used TLS. `offer`: the server offers STARTTLS with this
 * certificate.
 */
async function start(offer?: { readonly cert: string; readonly key: string }) {
  const logins: { readonly user: string | undefined; readonly secure: boolean }[] = [];
  server = await startMailServer({
    login: credentials,
    more: {
      disabledCommands: offer === undefined ? ['STARTTLS'] : [],
      ...offer,
      onAuth: ({ username }, { secure }, answer) => {
        logins.push({ user: username, secure });
        answer(null, { user: username });
      },
    },
  });
  const send = (host: string, plainText: boolean) =>
    createInvitationMailer({
      server: { host, port: server.port, secure: false, credentials },
      from: { name: '', address: 'sluice@mail.example' },
      acceptUrl: undefined,
      plainText,
    })(mail);
  return { logins, send };
}

const failure = (sending: Promise<void>): Promise<MailError> =>
  sending.then(
    () => expect.unreachable('the mail was sent'),
    (error: MailError) => error,
  );

describe('without TLS', () => {
  test('a server in the network receives neither the login nor the invitation', async () => {
    const { logins, send } = await start();
    expect(await failure(send(ELSEWHERE, false))).toMatchObject({ name: 'MailError', code: 'ETLS', refused: false });
    expect([logins, server.received]).toEqual([[], []]);
  });

  test('a server in the network receives both if the operator allows plain text', async () => {
    const { logins, send } = await start();
    await send(ELSEWHERE, true);
    expect(logins).toEqual([{ user: 'relay', secure: false }]);
    expect(server.received).toHaveLength(1);
  });

  test.each(LOOPBACK)('a server on this machine, %s, receives both', async host => {
    const { logins, send } = await start();
    await send(host, false);
    expect(logins).toEqual([{ user: 'relay', secure: false }]);
    expect(server.received).toHaveLength(1);
  });
});

describe('a server that offers STARTTLS', () => {
  const certificate = () => createCertificate({ dns: ['mail.example'], ipv4: [[0, 0, 0, 0]] });

  test.each([false, true])('receives the login over TLS; plain text allowed: %s', async plainText => {
    const offer = certificate();
    setDefaultCACertificates([...trusted, offer.cert]);
    const { logins, send } = await start(offer);
    await send(ELSEWHERE, plainText);
    expect(logins).toEqual([{ user: 'relay', secure: true }]);
    expect(server.received).toHaveLength(1);
  });

  test('with an untrusted certificate receives nothing', async () => {
    const { logins, send } = await start(certificate());
    expect((await failure(send(ELSEWHERE, false))).refused).toBe(false);
    expect([logins, server.received]).toEqual([[], []]);
  });
});
