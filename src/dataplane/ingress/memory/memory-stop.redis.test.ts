import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../../../test/support/redis/server.ts';
import { createHintIndex } from '../../../hints/hints.ts';
import { partKeys } from '../../../part/keys.ts';
import { createNoteStored } from '../../../part/stored/stored-bytes.ts';
import { notePart } from '../../../part/stored/testing/note-part.ts';
import { QUEUE } from '../../../record/testing/tenant.ts';
import { connectRedis } from '../../../redis/client.ts';
import { readRedisMemory } from '../../../redis/redis-metrics.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { answer, startScriptedEndpoint } from '../../dispatcher/testing/scripted-endpoint.ts';
import { createMemorySource } from '../../memory-source.ts';
import { createPartIngestion } from '../../part-ingestion.ts';
import { createPipeline, INGRESS_KEY } from '../../parts/testing/pipeline.ts';
import { createSandboxDesk } from '../../sandbox/desk.ts';
import { createSandboxRoutes } from '../sandbox/sandbox-routes.ts';
import { createIngress } from '../server.ts';

const log = createLogger({ level: 'silent' });
const BALLAST_BYTES = 64 * 1024 ** 2;

/**
 * An ingress with a separate Redis that contains some additional data. The events have an endpoint but no dispatcher
 * yet.
 */
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
    memorySource: {
      ...createMemorySource(redis),
      masters: () =>
        redis.masters().map(({ name, call }) => ({
          name,
          async readMemory() {
            try {
              return await call('INFO', info.broken ? 'nothing-of-the-kind' : 'memory');
            } finally {
              info.looks++;
            }
          },
        })),
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
  /** Waits until the next check has ended. The result of a check in progress is not used. */
  async function looked(): Promise<void> {
    const upTo = info.looks + 2;
    await expect.poll(() => info.looks, { timeout: 30_000, interval: 5 }).toBeGreaterThanOrEqual(upTo);
  }
  /** Sets the limit so that this fraction of it is used, and waits until ingress has detected this. */
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

test('an almost full Redis does not accept events, delivers stored events, and accepts events again when there is enough memory', async () => {
  const { server, endpoint, deliver, looked, limitTo, production, sandbox, bothAnswer } = await start();
  expect(await bothAnswer()).toEqual([202, 202]);
  await limitTo(79);
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

  // Events are not accepted immediately because the limit would be reached again after a few events.
  await limitTo(79);
  expect(await bothAnswer()).toEqual([503, 503]);
  await server.command('DEL', 'ballast');
  await looked();
  expect(await bothAnswer()).toEqual([202, 202]);
  await expect.poll(() => endpoint.requests.length, { timeout: 30_000 }).toBe(22);
});

test('a failed INFO does not change anything', async () => {
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

test('there is no limit without maxmemory', async () => {
  const { looked, bothAnswer } = await start();
  await looked();
  expect(await bothAnswer()).toEqual([202, 202]);
});

describe('a flood of one account', () => {
  /**
   * Two workspaces in a Redis of 64 MiB. The bytes of their streams are recorded as by an active dispatcher until `die`
   * is called.
   */
  async function startTwo() {
    const server = await startRedis({ maxmemory: '64mb' });
    onTestFinished(() => server.stop());
    const redis = await connectRedis(server.url, log);
    onTestFinished(() => redis.close());
    const [flood, calm] = [createPipeline(redis), createPipeline(redis)];
    const contextHeaders = { eventType: [], groupKey: ['x-key'], eventId: [], forward: [] };
    for (const each of [flood, calm]) await each.subscribe({ url: 'https://partner.example' }, { contextHeaders });
    const note = createNoteStored(redis);
    const parts = [flood, calm].map(({ tenant }) => ({ tenant, queue: QUEUE, gen: 'gen1', number: 0 }));
    const gens = await redis.readHash('{c}:parts');
    const noteAll = () =>
      Promise.all(
        parts.map(part => notePart(redis, note, { ...part, gen: gens[`${part.tenant}:${QUEUE}:0`] as string })),
      ).catch(() => {});
    const noting = setInterval(() => void noteAll(), 20);
    const die = () => clearInterval(noting);
    onTestFinished(die);
    const ingress = createIngress({
      store: createPartIngestion({ redis, nowMs: Date.now, alarm: () => {}, onRouted: () => {} }),
      memorySource: createMemorySource(redis),
      limits: { memoryLookMs: 10, queueTtlMs: 10, guaranteedBytes: 1024 ** 2 },
      registry: createRegistry(),
      log,
    });
    const port = await ingress.listen(0, '127.0.0.1');
    onTestFinished(() => ingress.close());
    const body = Buffer.alloc(64 * 1024);
    async function send({ tenant }: { readonly tenant: string }) {
      const headers = { 'x-api-key': INGRESS_KEY, 'x-key': 'k' };
      const reply = await request(`http://127.0.0.1:${port}/events/${tenant}/${QUEUE}`, {
        method: 'POST',
        headers,
        body,
      });
      const { code, detail } = (await reply.body.json()) as { code?: string; detail?: string };
      return { status: reply.statusCode, code, detail, retryAfter: reply.headers['retry-after'] };
    }
    const usedRatio = async () => (await readRedisMemory(redis)).usedRatio;
    /** Returns the number of events in the log of each stream. */
    const stored = () => Promise.all(parts.map(async part => redis.call('xlen', partKeys(part).log)));
    return { redis, flood, calm, die, send, usedRatio, stored };
  }

  test('is refused from 70 %, while other accounts continue, and stored events are kept', async () => {
    const { flood, calm, send, usedRatio, stored } = await startTwo();
    expect((await send(calm)).status).toBe(202);
    const answers = [];
    for (let i = 0; i < 1_200; i++) answers.push(await send(flood));
    expect(answers.at(-1)).toEqual({
      status: 429,
      code: 'storage_pressure',
      retryAfter: '30',
      detail: expect.stringMatching(/stores \d+\.\d MiB of it\. Its share is \d+\.\d MiB\. Send the event again/),
    });
    expect(answers.filter(({ status }) => status === 503)).toEqual([]);
    expect(await usedRatio()).toBeGreaterThan(0.69);
    expect(await usedRatio()).toBeLessThan(0.8);
    for (let i = 0; i < 20; i++) expect((await send(calm)).status).toBe(202);
    expect((await send(flood)).status).toBe(429);
    const accepted = answers.filter(({ status }) => status === 202).length;
    expect(accepted).toBeGreaterThan(100);
    expect(await stored()).toEqual([accepted, 21]);
  });

  test('is refused as well if its dispatcher has died before', async () => {
    const { flood, calm, die, send, usedRatio } = await startTwo();
    expect((await send(flood)).status).toBe(202);
    expect((await send(calm)).status).toBe(202);
    await pause(60);
    die();
    for (let i = 0; i < 1_200; i++) await send(flood);
    expect((await send(flood)).code).toBe('storage_pressure');
    expect(await usedRatio()).toBeLessThan(0.8);
    for (let i = 0; i < 20; i++) expect((await send(calm)).status).toBe(202);
  });
});
