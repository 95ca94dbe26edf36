import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { PROBLEMS } from '../../core/problems/problems.ts';
import { createPartTenant } from '../../dataplane/sandbox/testing/part-tenant.ts';
import { event, QUEUE, START_MS } from '../../record/testing/tenant.ts';
import { sandboxUseKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { partKeys } from '../keys.ts';
import { createRunClient, partOfRun } from './run-client.ts';
import { createSandboxStore, SANDBOX_LIMITS, type SandboxLimits } from './sandbox-store.ts';

const LIMITS: SandboxLimits = { eventsOfRun: 3, deliveriesOfRun: 4, runs: 2, events: 5, bytes: 100, deliveries: 6 };
const DAY_MS = 86_400_000;

test('the remedies of problems contain the limits in force', () => {
  const { eventsOfRun, deliveriesOfRun, runs, events, bytes, deliveries } = SANDBOX_LIMITS;
  const numbersIn = (code: 'sandbox_run_full' | 'sandbox_spent') => PROBLEMS[code].remedy.match(/\d[\d,]*/g);
  const written = (numbers: readonly number[]) => numbers.map(number => number.toLocaleString('en'));
  expect(numbersIn('sandbox_run_full')).toEqual(written([eventsOfRun, deliveriesOfRun]));
  expect(numbersIn('sandbox_spent')).toEqual(written([24, runs, events, deliveries, bytes / 1024 ** 2]));
});

onEachRedis(redis => {
  async function start(limits: Partial<SandboxLimits> = {}) {
    const t = createPartTenant(redis());
    await t.apply(t.routes({}));
    const store = createSandboxStore(t.client, t.nowMs, { ...LIMITS, ...limits });
    const config = await t.ingress.readQueue(t.tenant, QUEUE);
    if (config === null || config === 'unavailable') throw new Error('no queue');
    const publish = (run: string, id: string = randomUUID(), body = 'body') =>
      store.ingest(t.tenant, QUEUE, run, config, event(id, 'a', body));
    const used = () => redis().readHash(sandboxUseKeys(t.tenant).use);
    return { t, store, publish, used };
  }

  test('a run accepts a limited number of events, each once, and duplicates do not use capacity', async () => {
    const { t, store, publish } = await start();
    expect(await store.readRun(t.tenant, 'r')).toBeUndefined();
    const answers = [];
    for (const id of ['1', '1', '1', '1', '2', '3', '3', '4']) answers.push((await publish('r', id)).answer);
    expect(answers).toEqual(['OK', 'DUP', 'DUP', 'DUP', 'OK', 'OK', 'DUP', 'RUN_FULL']);
    expect(await store.readRun(t.tenant, 'r')).toEqual({
      begunMs: START_MS,
      endsMs: START_MS + DAY_MS,
      queues: [QUEUE],
    });
  });

  test('concurrent calls do not accept more events than sequential calls', async () => {
    const { publish } = await start({ eventsOfRun: 20, events: 1_000 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => publish('r')));
    expect(answers.filter(({ answer }) => answer === 'OK')).toHaveLength(20);
    expect(answers.filter(({ answer }) => answer === 'RUN_FULL')).toHaveLength(30);
  });

  test('headers that are stored with an event use capacity like its body, and release it', async () => {
    const { t, store, used } = await start();
    const config = await t.ingress.readQueue(t.tenant, QUEUE);
    if (config === null || config === 'unavailable') throw new Error('no queue');
    const whole = { ...event('1', 'a', 'body'), forward: { 'x-a': 'bc' }, attributes: { subject: 'caf\xe9' } };
    for (const answer of ['OK', 'DUP']) {
      expect(await store.ingest(t.tenant, QUEUE, 'r', config, whole)).toMatchObject({ answer });
      expect(await used()).toMatchObject({ bytes: `${'body'.length + 'x-abc'.length + 'subject'.length + 5}` });
    }
  });

  test.each([
    ['runs', ['a', 'b', 'c'], {}],
    ['events', ['a', 'a', 'a', 'b', 'b', 'b'], {}],
    ['bytes', ['a', 'b'], { bytes: 7 }],
  ])('all runs of a workspace together are limited by %s until the oldest run ends', async (_what, runs, limits) => {
    const { t, publish, used } = await start(limits);
    const answers = [];
    for (const [i, run] of runs.entries()) {
      answers.push(await publish(run, `e${i}`));
      t.clock.ms += 1_000;
    }
    const ends = START_MS + DAY_MS;
    expect([await publish('a', 'e0'), await publish('new', 'e0')]).toMatchObject([
      { answer: 'DUP' },
      { answer: 'SPENT' },
    ]);
    expect(answers.at(-1)).toEqual({ answer: 'SPENT', untilMs: ends });
    expect(answers.slice(0, -1).every(({ answer }) => answer === 'OK')).toBe(true);
    t.clock.ms = ends - 1;
    expect(await publish('new')).toEqual({ answer: 'SPENT', untilMs: ends });
    t.clock.ms = ends + 5_000;
    expect(await publish('new')).toMatchObject({ answer: 'OK' });
    expect(await used()).toEqual({ events: '1', bytes: '4', 'events:new': '1', 'bytes:new': '4' });
  });

  test('counts routed deliveries for the run and for the workspace', async () => {
    const { t, store, publish } = await start();
    await publish('a');
    expect(await store.readRoom(t.tenant, 'a')).toBe(4);
    await store.countDeliveries(t.tenant, 'a', 4);
    expect(await store.readRoom(t.tenant, 'a')).toBe(0);
    expect((await publish('a')).answer).toBe('RUN_FULL');
    await publish('b');
    expect(await store.readRoom(t.tenant, 'b')).toBe(2);
    await store.countDeliveries(t.tenant, 'b', 2);
    expect((await publish('c')).answer).toBe('SPENT');
    // Nothing is created for an unknown run.
    await store.countDeliveries(t.tenant, 'unknown', 7);
    expect(await store.readRoom(t.tenant, 'unknown')).toBe(0);
  });

  test('another workspace has a separate limit', async () => {
    const one = await start();
    const other = await start();
    for (const run of ['a', 'b', 'c']) await one.publish(run);
    expect((await one.publish('c')).answer).toBe('SPENT');
    expect((await other.publish('c')).answer).toBe('OK');
    expect(await other.store.readRun(other.t.tenant, 'a')).toBeUndefined();
  });

  test('the client of a run does not write permanent data, and only has access to the run', async () => {
    const { t } = await start();
    const ofRun = createRunClient(redis(), t.tenant, 'r', START_MS + DAY_MS);
    const { meta } = t.keys;
    expect(await ofRun.readHash(meta)).toEqual({});
    expect((await redis().readHash(meta)).ready).toBe('1');
    expect(() => ofRun.call('hset', meta, 'ready', '0')).toThrow('would write without an end');
    await ofRun.note('HSET', meta, ['ready', '0']);
    await ofRun.note('HSETNX', meta, ['ready', '2', 'other', '1']);
    expect(await ofRun.readHash(meta)).toEqual({ ready: '0', other: '1' });
    expect((await redis().readHash(meta)).ready).toBe('1');
    const key = `{s:${t.tenant}:r}:q:${t.tenant}:${QUEUE}:0:meta`;
    expect(await redis().call('pexpiretime', key)).toBe(START_MS + DAY_MS);
  });

  test('keys of a run expire with it, regardless of the script', async () => {
    const { t, publish } = await start();
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'a');
    expect((await publish('r')).answer).toBe('OK');
    const { log, lanes, keys, ids } = partKeys(partOfRun(t.tenant, QUEUE));
    const made = [log, lanes, keys, ids(Math.floor(START_MS / 3_600_000))];
    const own = (key: string) => `{s:${t.tenant}:r}:${key.replace(/[{}]/g, '')}`;
    const ends = await Promise.all(made.map(key => redis().call('pexpiretime', own(key))));
    expect(ends).toEqual(made.map(() => START_MS + DAY_MS));
  });
});
