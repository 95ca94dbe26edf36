import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatKubeconfig } from '../../../test/support/kubernetes/credentials.ts';
import { connect } from '../client.ts';
import { LEASES } from '../resource.ts';

test('requests do not wait for a connection of a proxy that did not respond, once it responds again', async () => {
  let responds = false;
  const proxy = createServer().on('connect', (_request, socket) => {
    socket.on('error', () => {});
    if (responds) socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve));
  const folder = await mkdtemp(join(tmpdir(), 'sluice-proxy-'));
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const kubeconfig = join(folder, 'config');
  const cluster = { server: 'https://127.0.0.1:6443', 'proxy-url': address };
  await writeFile(kubeconfig, formatKubeconfig({ cluster }));
  const client = connect({ kubeconfig });
  onTestFinished(async () => {
    await client.close();
    proxy.close();
    await rm(folder, { recursive: true });
  });
  const get = (timeoutMs: number) =>
    client.get(LEASES, { namespace: 'n', name: 'n' }, { over: 'leases', timeoutMs }).catch((error: Error) => error);
  // These are all connections for the Lease.
  await Promise.all([get(500), get(500)]);
  responds = true;
  expect(await get(20_000)).toMatchObject({ cause: { message: expect.stringContaining('502') } });
});
