import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../../test/support/free-port.ts';
import { createEndpointClient } from '../endpoint-client.ts';
import { createCertificate } from '../testing/certificate.ts';

/** Starts a server that sends this many session tickets after a handshake, and a key update for each `k`. */
async function serveTickets(count: number) {
  const certificate = createCertificate({ dns: ['partner.test'], ipv4: [[127, 0, 0, 1]] });
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tickets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const part of ['cert', 'key'] as const) writeFileSync(join(folder, part), certificate[part]);
  const port = await freePort();
  const files = ['-cert', join(folder, 'cert'), '-key', join(folder, 'key')];
  const server = spawn('openssl', ['s_server', '-accept', `127.0.0.1:${port}`, '-num_tickets', `${count}`, ...files]);
  onTestFinished(() => void server.kill());
  await new Promise<void>((resolve, reject) => {
    server.once('exit', code => reject(new Error(`openssl ended with ${code}`)));
    server.stdout.on('data', (text: Buffer) => text.includes('ACCEPT') && resolve());
  });
  server.removeAllListeners('exit');
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.1'], ca: certificate.cert });
  onTestFinished(() => client.close());
  return {
    server,
    attempt: (timeoutMs: number) =>
      client.attempt({ url: `https://127.0.0.1:${port}/`, headers: '', body: Buffer.from('{}'), timeoutMs }),
  };
}

test('a server that sends more than a few session tickets is cut off', { timeout: 60_000 }, async () => {
  const { attempt } = await serveTickets(1_000);
  expect(await attempt(20_000)).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
});

test('a server that updates its key again and again is cut off', { timeout: 60_000 }, async () => {
  const { attempt, server } = await serveTickets(2);
  const updating = setInterval(() => server.stdin.write('k\n'), 10);
  onTestFinished(() => clearInterval(updating));
  expect(await attempt(30_000)).toMatchObject({ outcome: 'failed', reason: 'tls_error' });
});

test('a few tickets are not an error', { timeout: 60_000 }, async () => {
  const { attempt } = await serveTickets(32);
  expect(await attempt(2_000)).toMatchObject({ outcome: 'failed', reason: 'timeout' });
});
