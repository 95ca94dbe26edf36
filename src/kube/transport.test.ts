import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { formatKubeconfig } from '../../test/support/kubernetes/credentials.ts';
import { connect } from './client.ts';
import { NAMESPACES } from './resource.ts';
import { jsonOf } from './transport.ts';

/**
 * Starts a server that calls `onData` with everything a connection receives, and returns a client for it. The client
 * uses TLS or not, depending on the protocol.
 */
async function serve(protocol: 'http' | 'https', onData: (socket: Socket) => void) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-transport-'));
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket);
    socket.on('data', () => onData(socket)).on('error', () => {});
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = join(folder, 'kubeconfig');
  const cluster = { server: address, 'insecure-skip-tls-verify': true };
  await writeFile(kubeconfig, formatKubeconfig({ cluster }));
  const codes: number[] = [];
  const metrics = { answered: (_method: string, code: number) => codes.push(code), policiesMissing: () => {} };
  const client = connect({ kubeconfig, metrics });
  onTestFinished(async () => {
    await client.close();
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(folder, { recursive: true });
  });
  return { client, codes };
}

const NAME = { name: 'n' };
/** Less than the time that undici tries to connect. */
const SOON_MS = 5_000;

test('does not wait longer than the timeout or the signal for a server that does not complete a connection', async () => {
  const { client } = await serve('https', () => {});
  const beganMs = performance.now();
  const stop = new AbortController();
  const calls = [
    expect(client.get(NAMESPACES, NAME, { timeoutMs: 100 })).rejects.toMatchObject({ reason: 'Timeout' }),
    expect(client.get(NAMESPACES, NAME, { signal: stop.signal })).rejects.toThrow('stopping'),
    expect(client.watch(NAMESPACES, { signal: stop.signal }).next()).rejects.toThrow('stopping'),
    expect(client.watch(NAMESPACES, { inactivityMs: 100 }).next()).rejects.toMatchObject({ reason: 'Timeout' }),
  ];
  setTimeout(() => stop.abort(new Error('stopping')), 100);
  await Promise.all(calls);
  expect(performance.now() - beganMs).toBeLessThan(SOON_MS);
});

test('does not wait for the rest of an error in response to a watch', async () => {
  const { client } = await serve('http', socket => {
    socket.write('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\n{');
  });
  await expect(client.watch(NAMESPACES, { inactivityMs: 200 }).next()).rejects.toMatchObject({ reason: 'Timeout' });
});

test('counts a watch without a response', async () => {
  const { client, codes } = await serve('http', socket => socket.destroy());
  await expect(client.watch(NAMESPACES, {}).next()).rejects.toMatchObject({ reason: 'ConnectionFailed' });
  expect(codes).toEqual([0]);
});

test('reads JSON and YAML with the same result', () => {
  const text = Array.from({ length: 0x200 }, (_, code) => String.fromCharCode(code)).join('');
  const value = { text, lines: 'a\u2028b\u2029c\ufeffd', wide: '😀', '\u0085': '"\\' };
  expect(JSON.parse(jsonOf(value))).toEqual(value);
  expect(parse(jsonOf(value))).toEqual(value);
  expect(jsonOf('\u0085')).toBe('"\\u0085"');
  expect(jsonOf('\ufffe\uffff')).toBe('"\\ufffe\\uffff"');
});
