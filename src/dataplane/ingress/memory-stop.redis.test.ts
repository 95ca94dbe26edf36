import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../../test/support/redis/server.ts';
import { createHintIndex } from '../../hints/hints.ts';
import { QUEUE } from '../../record/testing/tenant.ts';
import { connectRedis } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { answer, startScriptedEndpoint } from '../dispatcher/testing/scripted-endpoint.ts';
import { createPartIngestion } from '../part-ingestion.ts';
import { createPipeline, INGRESS_KEY } from '../parts/testing/pipeline.ts';
import { createSandboxDesk } from '../sandbox/desk.ts';
import { createSandboxRoutes } from './sandbox/sandbox-routes.ts';
import { createIngress } from './server.ts';

const log = createLogger({ level: 'silent' });
const BALLAST_BYTES = 64 * 1024 ** 2;

/** An ingress on a Redis of its own that holds some ballast; its events have an endpoint, and nobody sends them yet. */
async function start() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = await connectRedis(server.url, log);
  onTestFinished(() => redis.close());
  await server.command('SETRANGE', 'ballast', BALLAST_BYTES - 1, 'x');
  const endpoint = await startScriptedEndpoint(socket => socket.write(answer(204)));
  onTestFinished(() => endpoint.close());
  const pipeline = createPipeline(redis);
  const contextHeaders = { eventType: [], groupKey: ['x-key'], eventId: [], forward: [] };
  await pipeline.subscribe({ url: endpoint.url }, { contextHeaders });

  const info = { broken: false, looks: 0 };
  const { lower } = createHintIndex(redis, 's');
  const ingress = createIngress({
    store: createPartIngestion({ redis, nowMs: Date.now, alarm: () => {}, onRouted: () => {} }),
    addRoutes: createSandboxRoutes(createSandboxDesk({ redis, lower, nowMs: Date.now })),
    askMasters: async (command, ...args) => {
      try {
        return await redis.callAll(command, info.broken ? 'nothing-of-the-kind' : (args[0] as string));
      } finally {
        info.looks++;
      }
    },
    limits: { memoryLookMs: 10 },
    registry: createRegistry(),
    log,
  });
  const port = await ingress.listen(0, '127.0.0.1');
  onTestFinished(() => ingress.close());

  async function deliver(): Promise<void> {
    onTestFinished(await pipeline.startDispatcher(server.url));
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
  const production = () => send(`/events/${pipeline.tenant}/${QUEUE}`);
  const sandbox = () => send(`/events/sandbox/${pipeline.tenant}/${QUEUE}`);
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
  await deliver();
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
