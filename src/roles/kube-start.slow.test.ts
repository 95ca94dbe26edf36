import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { formatKubeconfig } from '../../test/support/kubernetes/credentials.ts';
import { packagesIn } from '../../test/support/loaded-packages.ts';
import { startSluice } from '../../test/support/sluice.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';

/** Starts a controller with this user's kubeconfig. Returns its first authorization and the loaded packages. */
async function startController(user: object) {
  const folder = await temporaryFolder('start');
  const coverage = await temporaryFolder('coverage');
  onTestFinished(() => Promise.all([folder.remove(), coverage.remove()]).then(() => {}));
  const asked = Promise.withResolvers<string | undefined>();
  const apiServer = createServer((request, response) => {
    asked.resolve(request.headers.authorization);
    response.writeHead(503).end('{}');
  });
  await new Promise<void>(resolve => apiServer.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void apiServer.close());
  const server = `http://127.0.0.1:${(apiServer.address() as AddressInfo).port}`;
  const kubeconfig = join(folder.path, 'config');
  await writeFile(kubeconfig, formatKubeconfig({ cluster: { server, 'insecure-skip-tls-verify': true }, user }));
  const controller = await startSluice({
    kubeconfig,
    redisUrl: `redis://127.0.0.1:${await freePort()}`,
    role: 'controller',
    unready: true,
    unbundled: true,
    env: { NODE_V8_COVERAGE: coverage.path },
  });
  const authorization = await asked.promise;
  expect(await controller.stop()).toEqual({ code: 0, signal: null });
  return { authorization, packages: await packagesIn(coverage.path) };
}

const CLIENT_NODE = '@kubernetes/client-node';

test('a controller with a simple kubeconfig does not load client-node', { timeout: 60_000 }, async () => {
  const { authorization, packages } = await startController({ token: 'plain' });
  expect(authorization).toBe('Bearer plain');
  expect(packages).toContain('undici');
  expect(packages).not.toContain(CLIENT_NODE);
});

test('a controller with an exec plugin loads client-node', { timeout: 60_000 }, async () => {
  const credential = {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: 'run' },
  };
  const exec = { apiVersion: credential.apiVersion, command: 'echo', args: [JSON.stringify(credential)] };
  const { authorization, packages } = await startController({ exec });
  expect(authorization).toBe('Bearer run');
  expect(packages).toContain(CLIENT_NODE);
});
