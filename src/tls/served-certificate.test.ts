import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { Agent, request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { pino } from 'pino';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type Authority, createAuthority } from '../../test/support/certificates.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createHttpServer } from '../http/server.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { createCertificateMetrics } from './certificate-metrics.ts';
import { endOf } from './pem-files.ts';
import { type Certificate, followCertificate, readCertificate } from './served-certificate.ts';

const LIMITS = {
  headerBytes: 16_384,
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
  connectionTimeoutMs: 60_000,
  keepAliveTimeoutMs: 60_000,
  lingerTimeoutMs: 5_000,
  drainTimeoutMs: 100,
};
const SOON = { timeout: 20_000, interval: 20 };

let folder: string;
let authority: Authority;

beforeEach(async () => {
  const made = await temporaryFolder('served');
  onTestFinished(made.remove);
  folder = made.path;
  authority = await createAuthority(folder);
});

const served = () => ({
  certificates: { variable: 'SLUICE_INGRESS_CERT_FILE', path: join(folder, 'tls.crt') },
  key: { variable: 'SLUICE_INGRESS_KEY_FILE', path: join(folder, 'tls.key') },
});

/**
 * Writes a certificate with this name to the path that the server reads, optionally with a `key` of another
 * certificate.
 */
async function place(name: string, key = name): Promise<void> {
  const files = await authority.issue(name, 'IP:127.0.0.1', `DNS:${name}.example`);
  const other = key === name ? files : await authority.issue(key);
  await copyFile(files.cert, join(folder, 'tls.crt'));
  await copyFile(other.key, join(folder, 'tls.key'));
}

/** Starts a server that reloads its certificate when the files change. */
async function serve(limits: Partial<typeof LIMITS> = {}) {
  const files = served();
  const first = readCertificate(files, []);
  if (first === undefined) throw new Error('there is no certificate');
  const server = createHttpServer({
    limits: { ...LIMITS, ...limits },
    certificate: first,
    factsOfNoRoute: () => ({}),
    sendProblem: reply => void reply.code(404).send(),
    onError: (_error, _request, reply) => void reply.code(500).send(),
  });
  server.app.get('/', async () => 'served');
  const lines: { readonly level: number; readonly msg: string; readonly detail?: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line) as never) });
  const following = followCertificate({ served: { files, first }, onChange: server.useCertificate, log, everyMs: 20 });
  const port = await server.listen(0, '127.0.0.1');
  onTestFinished(async () => {
    following.stop();
    await server.close();
  });
  return { port, lines, following };
}

/** Sends a request. Returns the response and the name in the connection's certificate. */
async function call(port: number, agent?: Agent) {
  const { ca } = authority;
  const options = { port, host: '127.0.0.1', ca: await readFile(ca), agent: agent ?? false };
  return new Promise<{ readonly body: string; readonly name: unknown; readonly socket: TLSSocket }>(
    (resolve, reject) => {
      httpsRequest(options, response => {
        const socket = response.socket as TLSSocket;
        const name = socket.getPeerCertificate().subject?.CN;
        text(response).then(body => resolve({ body, name, socket }), reject);
      })
        .once('error', reject)
        .end();
    },
  );
}

test('a new certificate is used once its files exist, and open connections are kept', async () => {
  await place('first');
  const { port, lines, following } = await serve();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const before = await call(port, agent);
  expect(before).toMatchObject({ body: 'served', name: 'first' });
  await place('second');
  await vi.waitFor(async () => expect((await call(port)).name).toBe('second'), SOON);
  const after = await call(port, agent);
  expect(after.body).toBe('served');
  expect(after.socket).toBe(before.socket);
  expect(following.current().cert).toBe(await readFile(join(folder, 'tls.crt'), 'utf8'));
  expect(lines.filter(({ msg }) => msg === 'serving a new certificate')).toHaveLength(1);
});

test('while the files cannot be used, the last certificate is used, and the log and the metric report this', async () => {
  await place('first');
  const { port, lines, following } = await serve();
  const registry = createRegistry();
  createCertificateMetrics(registry).watch('ingress', {
    endMs: () => endOf(following.current().cert),
    rejected: () => following.problem() !== undefined,
  });
  const metrics = async () => (await registry.metrics()).split('\n').filter(line => line.includes('use="ingress"'));
  const end = endOf(following.current().cert) / 1_000;
  expect(end - Date.now() / 1_000).toBeGreaterThan(86_400);
  expect(await metrics()).toEqual([
    `sluice_certificate_expiry_timestamp_seconds{use="ingress"} ${end}`,
    'sluice_certificate_rejected{use="ingress"} 0',
  ]);

  await place('second', 'stranger');
  await vi.waitFor(() => expect(following.problem()).toContain('is not the key of the first certificate'), SOON);
  expect(await call(port)).toMatchObject({ body: 'served', name: 'first' });
  expect((await metrics())[1]).toBe('sluice_certificate_rejected{use="ingress"} 1');
  const warnings = () => lines.filter(({ level }) => level === 40);
  expect(warnings().at(-1)).toMatchObject({
    msg: 'failed to load the new certificate, using the previous one',
    detail: expect.stringContaining('SLUICE_INGRESS_KEY_FILE'),
  });

  await writeFile(join(folder, 'tls.crt'), 'nothing');
  await vi.waitFor(() => expect(following.problem()).toContain('must contain certificates in PEM format'), SOON);
  expect((await call(port)).name).toBe('first');
  const before = warnings().length;

  await place('third');
  await vi.waitFor(async () => expect((await call(port)).name).toBe('third'), SOON);
  expect(following.problem()).toBeUndefined();
  expect((await metrics())[1]).toBe('sluice_certificate_rejected{use="ingress"} 0');
  // Each problem is reported once, regardless of how often the files were read. There may be an additional report while
  // the files are being replaced.
  expect(warnings().length).toBeLessThanOrEqual(before + 1);
});

test('an expired certificate does not replace a valid one', async () => {
  await place('first');
  const { port, lines, following } = await serve();
  const expired = await authority.issueExpired('expired', 'IP:127.0.0.1');
  await copyFile(expired.cert, join(folder, 'tls.crt'));
  await copyFile(expired.key, join(folder, 'tls.key'));
  await vi.waitFor(() => expect(following.problem()).toMatch(/^SLUICE_INGRESS_CERT_FILE: .* expired at /), SOON);
  expect((await call(port)).name).toBe('first');
  expect(lines.some(({ level, detail }) => level === 40 && detail?.includes('expired at'))).toBe(true);
  await place('second');
  await vi.waitFor(async () => expect((await call(port)).name).toBe('second'), SOON);
  expect(following.problem()).toBeUndefined();
});

test('an expired certificate is replaced by any other', async () => {
  const old = await authority.issueExpired('old', 'IP:127.0.0.1');
  await copyFile(old.cert, join(folder, 'tls.crt'));
  await copyFile(old.key, join(folder, 'tls.key'));
  const { following } = await serve();
  const next = await authority.issueExpired('next', 'IP:127.0.0.1');
  await copyFile(next.cert, join(folder, 'tls.crt'));
  await copyFile(next.key, join(folder, 'tls.key'));
  const cert = await readFile(next.cert, 'utf8');
  await vi.waitFor(() => expect(following.current().cert).toBe(cert), SOON);
});

test('a client without TLS does not receive a response from the program', async () => {
  await place('first');
  const { port } = await serve();
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  expect(await text(socket)).not.toContain('served');
  expect((await call(port)).body).toBe('served');
});

test('a client that never starts the handshake is disconnected', async () => {
  await place('first');
  const { port } = await serve({ headersTimeoutMs: 200 });
  const socket = connect(port, '127.0.0.1').resume();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'close');
});

test('a certificate that the server does not accept is not used, and is tried again', async () => {
  await place('first');
  const files = served();
  const first = readCertificate(files, []) as Certificate;
  const refuse = vi.fn<(certificate: Certificate) => void>(() => {
    throw new Error('no memory');
  });
  const following = followCertificate({
    served: { files, first },
    onChange: refuse,
    log: pino({ level: 'silent' }),
    everyMs: 20,
  });
  onTestFinished(following.stop);
  await place('second');
  await vi.waitFor(() => expect(refuse.mock.calls.length).toBeGreaterThan(1), SOON);
  expect([following.problem(), following.current()]).toEqual(['SLUICE_INGRESS_CERT_FILE: no memory', first]);
});
