import { once } from 'node:events';
import { createServer as createPlainServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createEndpointClient } from './endpoint-client.ts';
import type { ResolveName } from './http/name-lookup.ts';
import { createCertificate } from './testing/certificate.ts';
import { answer } from './testing/scripted-endpoint.ts';

let trusted: { cert: string; key: string };
let nameOnly: { cert: string; key: string };
let stranger: { cert: string; key: string };
let expired: { cert: string; key: string };
let early: { cert: string; key: string };
beforeAll(() => {
  trusted = createCertificate({ dns: ['partner.test'], ipv4: [[127, 0, 0, 1]] });
  nameOnly = createCertificate({ dns: ['partner.test'] });
  stranger = createCertificate({ dns: ['partner.test'] });
  const [hourMs, nowMs] = [3_600_000, Date.now()];
  expired = createCertificate({ dns: ['partner.test'], validMs: [nowMs - 2 * hourMs, nowMs - hourMs] });
  early = createCertificate({ dns: ['partner.test'], validMs: [nowMs + hourMs, nowMs + 2 * hourMs] });
});

const shortLived = (untilMs: number) =>
  createCertificate({ dns: ['partner.test'], validMs: [Date.now() - 3_600_000, untilMs] });

const toLoopback: ResolveName = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);

async function serve(
  certificate: { cert: string; key: string },
  script: (socket: Socket) => void = socket => socket.end(answer(200)),
  ALPNProtocols = ['h2', 'http/1.1'],
  options: TlsOptions = {},
) {
  const handshakes: { servername: unknown; resumed: boolean; alpn: string | false | null }[] = [];
  const server = createServer({ ...certificate, ALPNProtocols, ...options }, (socket: TLSSocket) => {
    const servername = 'servername' in socket ? socket.servername : undefined;
    handshakes.push({ servername, resumed: socket.isSessionReused(), alpn: socket.alpnProtocol });
    socket.on('error', () => {});
    socket.once('data', () => script(socket));
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = createEndpointClient({
    allowedNetworks: ['127.0.0.1'],
    ca: trusted.cert + nameOnly.cert + expired.cert + early.cert + (certificate === stranger ? '' : certificate.cert),
    resolveName: toLoopback,
    connectTimeoutMs: 2000,
  });
  onTestFinished(() => new Promise(resolve => server.close(() => resolve())));
  onTestFinished(() => client.close());
  const port = typeof address === 'object' ? address?.port : 0;
  const attempt = (host: string, more: { timeoutMs?: number; body?: Buffer } = {}) =>
    client.attempt({ url: `https://${host}:${port}/hook`, headers: '', body: Buffer.from('{}'), ...more });
  return { attempt, handshakes, port };
}

describe('https endpoints', () => {
  test('by name: SNI contains the name, and HTTP/1.1 is negotiated', async () => {
    const { attempt, handshakes } = await serve(trusted);
    expect(await attempt('partner.test')).toMatchObject({ outcome: 'delivered', status: 200 });
    expect(handshakes).toEqual([{ servername: 'partner.test', resumed: false, alpn: 'http/1.1' }]);
  });

  test('by name with a final dot: SNI does not contain the dot', async () => {
    const { attempt, handshakes } = await serve(trusted);
    expect(await attempt('partner.test.')).toMatchObject({ outcome: 'delivered', status: 200 });
    expect(handshakes[0]?.servername).toBe('partner.test');
  });

  test('by address: the certificate must contain the address, and there is no SNI', async () => {
    const { attempt, handshakes } = await serve(trusted);
    expect(await attempt('127.0.0.1')).toMatchObject({ outcome: 'delivered' });
    expect(handshakes[0]?.servername).toBeFalsy();
  });

  test('a second connection resumes the session of the first', async () => {
    const { attempt, handshakes } = await serve(trusted);
    await attempt('partner.test');
    await attempt('partner.test');
    expect(handshakes.map(({ resumed }) => resumed)).toEqual([false, true]);
  });

  test.each([
    ['for another name', () => trusted, 'other.test'],
    ['of an unknown issuer', () => stranger, 'partner.test'],
    ['that does not name the address', () => nameOnly, '127.0.0.1'],
    ['that is out of date', () => expired, 'partner.test'],
    ['that is not valid yet', () => early, 'partner.test'],
  ])('a certificate %s is refused before anything is sent', async (_name, certificate, host) => {
    const { attempt, handshakes } = await serve(certificate());
    const result = await attempt(host);
    expect(result).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
    expect(result).not.toHaveProperty('status');
    // The server may have finished its side of the handshake, but did not receive a request.
    expect(handshakes.length).toBeLessThanOrEqual(1);
    expect(await attempt(host)).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
  });

  test.each<[string, (socket: Socket) => void]>([
    ['speaks no TLS', socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')],
    ['hangs up', socket => socket.end()],
    ['resets', socket => socket.resetAndDestroy()],
  ])('a server that %s results in tls_error', async (_name, script) => {
    const server = createPlainServer(socket => socket.on('error', () => {}).once('data', () => script(socket)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const client = createEndpointClient({ allowedNetworks: ['127.0.0.1'], connectTimeoutMs: 2000 });
    onTestFinished(() => new Promise(resolve => server.close(() => resolve())));
    onTestFinished(() => client.close());
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
    const result = await client.attempt({ url, headers: '', body: Buffer.alloc(1) });
    expect(result).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a certificate that expires is refused, even if the session could be resumed: %s',
    async maxVersion => {
      const untilMs = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000;
      const { attempt, handshakes } = await serve(shortLived(untilMs), undefined, undefined, { maxVersion });
      for (let n = 0; n < 2; n++) expect(await attempt('partner.test')).toMatchObject({ outcome: 'delivered' });
      expect(handshakes.map(({ resumed }) => resumed)).toEqual([false, true]);
      await delay(untilMs - Date.now() + 1_000);
      for (let n = 0; n < 2; n++) expect(await attempt('partner.test')).toMatchObject({ reason: 'tls_error' });
    },
  );

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a server that requires a client certificate results in tls_error: %s',
    async maxVersion => {
      const { attempt, handshakes } = await serve(trusted, undefined, undefined, { requestCert: true, maxVersion });
      // With TLS 1.3, the client is the first to complete the handshake.
      expect(await attempt('partner.test')).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
      expect(handshakes).toEqual([]);
    },
  );

  test('a server that only supports HTTP/2 results in tls_error', async () => {
    const { attempt, handshakes } = await serve(trusted, undefined, ['h2']);
    expect(await attempt('partner.test')).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
    expect(handshakes).toEqual([]);
  });

  test('endless data is also cut off when using TLS', async () => {
    const { attempt } = await serve(trusted, socket => {
      socket.write('HTTP/1.1 200 ');
      const pour = () => {
        while (!socket.destroyed && socket.write('y'.repeat(1_000)));
      };
      socket.on('drain', pour);
      pour();
    });
    expect(await attempt('partner.test')).toMatchObject({ outcome: 'failed', reason: 'headers_too_large' });
  });

  test('a server that does not complete the handshake results in a connect timeout', async () => {
    const sockets: Socket[] = [];
    const server = createPlainServer(socket => sockets.push(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const client = createEndpointClient({ allowedNetworks: ['127.0.0.1'], connectTimeoutMs: 80 });
    onTestFinished(() => new Promise(resolve => server.close(() => resolve())));
    onTestFinished(() => sockets.forEach(socket => socket.destroy()));
    onTestFinished(() => client.close());
    const url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
    const result = await client.attempt({ url, headers: '', body: Buffer.alloc(1) });
    expect(result).toMatchObject({ outcome: 'failed', reason: 'connect_timeout' });
  });
});

test('a request without a response in time is reset, so the rest of it cannot arrive later', async () => {
  const ended = Promise.withResolvers<void>();
  let bytes = 0;
  const { attempt } = await serve(trusted, socket => {
    // The reset is not an error here if the server had noticed it before while it was writing.
    socket.on('error', () => ended.resolve());
    socket.on('end', () => ended.resolve());
    // The server does not read anything until long after the attempt.
    socket.pause();
    setTimeout(() => {
      socket.on('data', chunk => {
        bytes += chunk.length;
      });
      socket.resume();
    }, 300);
  });
  const body = Buffer.alloc(8 * 2 ** 20);
  expect(await attempt('partner.test', { timeoutMs: 150, body })).toMatchObject({
    outcome: 'failed',
    reason: 'timeout',
  });
  await ended.promise;
  expect(bytes).toBeLessThan(body.length);
});
