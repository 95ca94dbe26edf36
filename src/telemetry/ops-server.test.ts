import { afterEach, expect, test } from 'vitest';
import { Counter, createRegistry, Gauge } from './metrics.ts';
import { type OpsServer, startOpsServer } from './ops-server.ts';

let server: OpsServer | undefined;
afterEach(() => server?.close());

test('serves metrics, health, and readiness, and lists missing conditions', async () => {
  const registry = createRegistry();
  new Counter({ name: 'sluice_test_total', help: 'A test.', registers: [registry] }).inc(3);
  const redis = { message: 'redis is unavailable' };
  let dispatcher = { ready: false, impairments: [redis] };
  server = await startOpsServer({ host: undefined, port: 0 }, registry, {
    dispatcher: () => dispatcher,
    controller: () => ({ ready: true, impairments: [] }),
  });
  const at = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server?.port}${path}`, init);

  expect(await (await at('/metrics')).text()).toContain('sluice_test_total 3');
  expect((await at('/healthz')).status).toBe(200);
  const unready = await at('/readyz?verbose');
  expect([unready.status, await unready.text()]).toEqual([503, 'dispatcher: redis is unavailable\n']);
  dispatcher = { ready: true, impairments: [redis] };
  const impaired = await at('/readyz');
  expect([impaired.status, await impaired.text()]).toEqual([200, 'ok\ndispatcher: redis is unavailable\n']);
  dispatcher = { ready: true, impairments: [] };
  expect(await (await at('/readyz')).text()).toBe('ok\n');
  expect((await at('/')).status).toBe(404);
  const post = await at('/metrics', { method: 'POST' });
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('listens on one address if it is configured, and on all addresses otherwise', async () => {
  const registry = createRegistry();
  const statusAt = (address: string) =>
    fetch(`http://${address}:${server?.port}/healthz`).then(
      ({ status }) => status,
      error => (error as { cause: { code: string } }).cause.code,
    );
  server = await startOpsServer({ host: '127.0.0.1', port: 0 }, registry, {});
  expect([await statusAt('127.0.0.1'), await statusAt('127.0.0.2')]).toEqual([200, 'ECONNREFUSED']);
  await server.close();
  server = await startOpsServer({ host: undefined, port: 0 }, registry, {});
  expect([await statusAt('127.0.0.1'), await statusAt('127.0.0.2')]).toEqual([200, 200]);
});

test('metrics that cannot be collected are a failure', async () => {
  const registry = createRegistry();
  const collect = () => {
    throw new Error('broken');
  };
  new Gauge({ name: 'sluice_test', help: 'A test.', registers: [registry], collect });
  server = await startOpsServer({ host: '127.0.0.1', port: 0 }, registry, {});
  const response = await fetch(`http://127.0.0.1:${server.port}/metrics`);
  expect([response.status, await response.text()]).toEqual([500, 'cannot collect metrics\n']);
});
