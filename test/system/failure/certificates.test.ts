import { copyFile, readFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { type CertificateFiles, createAuthority, tlsArguments } from '../../support/certificates.ts';
import { freePort } from '../../support/free-port.ts';
import { type Issuer, startIssuer } from '../../support/issuer.ts';
import { type MailServer, startMailServer } from '../../support/mail/mail-server.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { DOCUMENTED, type RedisServer, startRedis } from '../../support/redis/server.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { apply, integration, tenant } from '../support/world.ts';

/**
 * A private certificate authority, which has signed its own certificate and the certificates of all services used by
 * Sluice.
 */
let folder: TemporaryFolder;
let ca: string;
let installed: Installation;
let redis: RedisServer;
let issuer: Issuer;
let mail: MailServer;
let collector: OtlpReceiver;
let own: CertificateFiles;
let next: CertificateFiles;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  folder = await temporaryFolder('certificates');
  const authority = await createAuthority(folder.path);
  ca = authority.ca;
  const server = await authority.issue('server', 'IP:127.0.0.1', 'DNS:localhost');
  const pem = { cert: await readFile(server.cert, 'utf8'), key: await readFile(server.key, 'utf8') };
  own = await authority.issue('first', 'IP:127.0.0.1');
  next = await authority.issue('second', 'IP:127.0.0.1');
  const tlsPort = await freePort();
  [installed, redis, issuer, mail, collector] = await Promise.all([
    install(),
    startRedis({ appendonly: true, extra: [...DOCUMENTED, ...tlsArguments(tlsPort, ca, server, 'no')] }),
    startIssuer(0, server),
    startMailServer({ more: { secure: true, ...pem } }),
    startOtlpReceiver(pem),
  ]);
  await replace(own);
  env = {
    SLUICE_REDIS_URL: `rediss://127.0.0.1:${tlsPort}`,
    ...issuer.env,
    SLUICE_SMTP_URL: `smtps://127.0.0.1:${mail.port}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '200',
    ...files('INGRESS'),
    ...files('FACADE'),
  };
});

afterAll(async () => {
  await installed?.stop();
  await Promise.all([redis?.stop(), issuer?.close(), mail?.close(), collector?.close()]);
  await folder?.remove();
});

const files = (role: string) => ({
  [`SLUICE_${role}_CERT_FILE`]: join(folder.path, 'tls.crt'),
  [`SLUICE_${role}_KEY_FILE`]: join(folder.path, 'tls.key'),
});

async function replace({ cert, key }: CertificateFiles): Promise<void> {
  await copyFile(cert, join(folder.path, 'tls.crt'));
  await copyFile(key, join(folder.path, 'tls.key'));
}

const invite = (producer: string, partner: string) =>
  integration(producer, partner, { workspace: undefined, invitedEmail: `${partner}@partner.example` });
const mailsTo = (partner: string) => mail.received.filter(({ to }) => to.includes(`${partner}@partner.example`)).length;

/** Sends a request using TLS. Returns the status and the name in the certificate. */
async function call(url: string, path: string, token = '') {
  const options = { ca: await readFile(ca), headers: { authorization: `Bearer ${token}` }, agent: false };
  return new Promise<{ readonly status: number | undefined; readonly name: unknown }>((resolve, reject) => {
    get(new URL(path, url.replace('http:', 'https:')), options, response => {
      const name = (response.socket as TLSSocket).getPeerCertificate().subject?.CN;
      buffer(response).then(() => resolve({ status: response.statusCode, name }), reject);
    }).once('error', reject);
  });
}

const catalogOf = (producer: string) => `/waas/producer/${tenantId(producer)}/catalog`;
it('with NODE_EXTRA_CA_CERTS, the authority is trusted for Redis, the identity provider, the mail server, and the collector', async () => {
  const sluice = await installed.start({ env: { ...env, NODE_EXTRA_CA_CERTS: ca } });
  const owner = { owners: [{ issuer: issuer.url, subject: 'ada', role: 'Owner' }], plan: 'Metered' };
  await apply(installed.cluster, [...tenant('shop', owner), invite('shop', 'trusting')]);
  const token = await issuer.token({ sub: 'ada' });
  await eventually(
    'the facade has received the workspace',
    async () => (await call(sluice.facadeUrl, catalogOf('shop'), token)).status === 200,
  );
  await eventually('the invitation is sent', async () => mailsTo('trusting') === 1);
  await eventually('spans are received', async () => collector.requests.length > 0);

  const inTwoDays = Date.now() / 1_000 + 2 * 86_400;
  for (const use of ['redis', 'smtp', 'ingress', 'facade']) {
    const seen = async () => sluice.metric('sluice_certificate_expiry_timestamp_seconds', { use });
    await eventually(`the certificate for ${use} is reported`, async () => (await seen()) > 0);
    expect(Math.abs((await seen()) - inTwoDays)).toBeLessThan(3_600);
  }

  expect(await call(sluice.ingressUrl, '/')).toEqual({ status: 404, name: 'first' });
  await replace(next);
  for (const url of [sluice.ingressUrl, sluice.facadeUrl]) {
    await eventually('the new certificate is used', async () => (await call(url, '/')).name === 'second');
  }
  await copyFile(own.key, join(folder.path, 'tls.key'));
  const rejected = () => sluice.metric('sluice_certificate_rejected', { use: 'ingress' });
  await eventually('the wrong key is reported', async () => (await rejected()) === 1);
  expect((await call(sluice.ingressUrl, '/')).name).toBe('second');
  expect(await sluice.readyz()).toEqual([200, 'ok\n']);
  await replace(own);
  await eventually('the certificate is used again', async () => (await rejected()) === 0);
  await sluice.stop();
});

it('without NODE_EXTRA_CA_CERTS, each of these services is refused', async () => {
  const waiting = await installed.start({ role: 'dispatcher', unready: true, env });
  await eventually('Redis is refused', async () => (await waiting.readyz())[1].includes('Set SLUICE_REDIS_CA_FILE'));
  const exported = collector.requests.length;
  const sluice = await installed.start({ env: { ...env, SLUICE_REDIS_CA_FILE: ca } });
  await apply(installed.cluster, [invite('shop', 'doubting')]);
  const token = await issuer.token({ sub: 'ada' });
  expect((await call(sluice.facadeUrl, catalogOf('shop'), token)).status).toBe(503);
  const isLogged = async (msg: string) => (await sluice.logLines()).some(line => line['msg'] === msg);
  await eventually('the collector is refused', async () =>
    isLogged('failed to export spans: check OTEL_EXPORTER_OTLP_ENDPOINT and the collector'),
  );
  const failed = () => sluice.metric('sluice_controller_invitation_mails_total', { result: 'failed' });
  await eventually('the mail server is refused', async () => (await failed()) > 0);
  expect(mailsTo('doubting')).toBe(0);
  expect(collector.requests).toHaveLength(exported);
});
