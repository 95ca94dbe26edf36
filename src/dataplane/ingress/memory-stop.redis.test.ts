import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../../test/support/redis/server.ts';
import { sealEndpoint } from '../../core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../core/delivery/seal.ts';
import { hashIngressKey } from '../../core/ids/ingress-key.ts';
import { connectRedis } from '../../redis/client.ts';
import { createHintIndex } from '../../redis/hints.ts';
import { createQueueSource } from '../../redis/sandbox-source.ts';
import { createTenant, QUEUE, START_MS } from '../../redis/testing/tenant.ts';
import { createTrafficStore } from '../../redis/traffic-store.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { createDispatcher } from '../dispatcher/dispatcher.ts';
import { createEndpointClient } from '../dispatcher/endpoint-client.ts';
import { answer, startScriptedEndpoint } from '../dispatcher/testing/scripted-endpoint.ts';
import { createIngestion } from '../ingestion.ts';
import { createRouter } from '../router/router.ts';
import { createSandboxDesk } from '../sandbox/desk.ts';
import { createIngress } from './server.ts';

const log = createLogger({ level: 'silent' });
const ROOT_KEY = Buffer.alloc(32, 7);
const SEAL_KEYS = deriveSealKeys(ROOT_KEY);
const INGRESS_KEY = 'a key of the producer';
const BALLAST_BYTES = 64 * 1024 ** 2;

/** An ingress on a Redis of its own that holds some ballast; its events have an endpoint, and nobody routes them yet. */
async function start() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = await connectRedis(server.url, log);
  onTestFinished(() => redis.close());
  await server.command('SETRANGE', 'ballast', BALLAST_BYTES - 1, 'x');
  const endpoint = await startScriptedEndpoint(socket => socket.write(answer(204)));
  onTestFinished(() => endpoint.close());
  const tenant = createTenant(redis);
  const begun = performance.now();
  const nowMs = () => START_MS + Math.round(performance.now() - begun);
  Object.defineProperty(tenant.clock, 'ms', { get: nowMs });
  const sealed = sealEndpoint(SEAL_KEYS, 'sub_x', {
    url: endpoint.url,
    timeoutMs: 5_000,
    retryMs: [200],
    headers: {},
    secretVersion: 1,
  });
  const contextHeaders = { eventType: [], groupKey: ['x-key'], eventId: [], forward: [] };
  const routes = tenant.routes({ x: { sub: { endpoint: sealed } } }, { contextHeaders });
  await tenant.apply({ ...routes, keys: { [hashIngressKey(INGRESS_KEY)]: '' } });
  await tenant.activate('x', 'k');

  const info = { broken: false, looks: 0 };
  const registry = createRegistry();
  const hints = { r: createHintIndex(redis, 'r'), d: createHintIndex(redis, 'd'), s: createHintIndex(redis, 's') };
  const ingress = createIngress({
    store: createIngestion({ operations: tenant.ingress, lower: hints.r.lower, nowMs }),
    sandbox: createSandboxDesk({ redis, source: createQueueSource(redis), lower: hints.s.lower, nowMs }),
    askMasters: async (command, ...args) => {
      try {
        return await redis.callAll(command, info.broken ? 'nothing-of-the-kind' : (args[0] as string));
      } finally {
        info.looks++;
      }
    },
    limits: { memoryLookMs: 10 },
    registry,
    log,
  });
  const port = await ingress.listen(0, '127.0.0.1');
  onTestFinished(() => ingress.close());

  /** Starts whoever routes and delivers. */
  function deliver(): void {
    const { inboxes, queues, ledger } = tenant;
    const common = { inboxes, traffic: createTrafficStore(redis), alarm: () => {}, nowMs, log, registry };
    const router = createRouter({ ...common, queues, ledger, queueHints: hints.r, inboxHints: hints.d });
    const client = createEndpointClient({ allowedNetworks: ['127.0.0.1'] });
    const keys = { rootKey: ROOT_KEY, sealKeys: SEAL_KEYS };
    const dispatcher = createDispatcher({ ...common, hints: hints.d, client, keys, version: '0', wallMs: Date.now });
    router.start();
    dispatcher.start();
    for (const end of [client.close, dispatcher.stop, router.stop]) onTestFinished(end);
  }
  async function send(path: string) {
    const headers = { 'x-api-key': INGRESS_KEY, 'x-key': 'k' };
    const reply = await request(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: 'body' });
    const { code, detail } = (await reply.body.json()) as { code?: string; detail?: string };
    return { status: reply.statusCode, retryAfter: reply.headers['retry-after'], code, detail };
  }
  /** The next look that begins has ended; one that is under way says nothing. */
  async function looked(): Promise<void> {
    const upTo = info.looks + 2;
    await expect.poll(() => info.looks, { timeout: 30_000, interval: 5 }).toBeGreaterThanOrEqual(upTo);
  }
  /** Sets the limit so that this much of it is used, and waits until ingress has seen it. */
  async function limitTo(percent: number): Promise<void> {
    const said = String((await redis.callAll('INFO', 'memory'))[0]);
    const used = Number(/^used_memory:(\d+)/m.exec(said)?.[1]);
    await server.command('CONFIG', 'SET', 'maxmemory', Math.round((used * 100) / percent));
    await looked();
  }
  const production = () => send(`/events/${tenant.tenant}/${QUEUE}`);
  const sandbox = () => send(`/events/sandbox/${tenant.tenant}/${QUEUE}`);
  const bothAnswer = async () => [(await production()).status, (await sandbox()).status];
  return { server, info, endpoint, deliver, looked, limitTo, production, sandbox, bothAnswer };
}

test('nearly full, Redis takes no new events, delivers those that it has, and takes events again when it has room', async () => {
  const { server, endpoint, deliver, looked, limitTo, production, sandbox, bothAnswer } = await start();
  expect(await bothAnswer()).toEqual([202, 202]);
  await limitTo(82);
  for (let i = 0; i < 20; i++) expect((await production()).status).toBe(202);

  await limitTo(87);
  const refused = {
    status: 503,
    code: 'overloaded',
    retryAfter: '10',
    detail: expect.stringContaining('Send the event again'),
  };
  expect(await production()).toEqual(refused);
  expect(await sandbox()).toEqual(refused);
  deliver();
  await expect.poll(() => endpoint.requests.length, { timeout: 30_000 }).toBe(21);
  expect(await bothAnswer()).toEqual([503, 503]);

  // Not at once: it would be off again with the next few events.
  await limitTo(82);
  expect(await bothAnswer()).toEqual([503, 503]);
  await server.command('DEL', 'ballast');
  await looked();
  expect(await bothAnswer()).toEqual([202, 202]);
  await expect.poll(() => endpoint.requests.length, { timeout: 30_000 }).toBe(22);
});

test('an INFO that fails changes nothing', async () => {
  const { info, looked, limitTo, bothAnswer } = await start();
  info.broken = true;
  await limitTo(87);
  expect(await bothAnswer()).toEqual([202, 202]);
  info.broken = false;
  await looked();
  expect(await bothAnswer()).toEqual([503, 503]);
  info.broken = true;
  await limitTo(50);
  expect(await bothAnswer()).toEqual([503, 503]);
  info.broken = false;
  await looked();
  expect(await bothAnswer()).toEqual([202, 202]);
});

test('without maxmemory nothing is too much', async () => {
  const { looked, bothAnswer } = await start();
  await looked();
  expect(await bothAnswer()).toEqual([202, 202]);
});
