import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectRedis } from '../../src/redis/client.ts';
import { createLogger } from '../../src/telemetry/log.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { playHistories, type Stage } from './histories.ts';
import { oneByOne } from './processes/one-by-one.ts';
import { listenToPushes } from './processes/pushes.ts';

/** `make test-model` uses 12,000, and `make test-mutants` 3,000. */
const STEPS = Number(process.env.STEPS || 400);
const SEED = Number(process.env.SEED || 1);
const REPLAY = process.env.REPLAY || undefined;

const STAGES = 2;

const servers: RedisServer[] = [];
const stages: Stage[] = [];

/** This test uses a separate Redis because each history starts with an empty Redis. */
async function startEmpty() {
  const server = await startRedis();
  servers.push(server);
  return { redis: oneByOne(await connectRedis(server.url, createLogger({ level: 'silent' }))), url: server.url };
}

beforeAll(async () => {
  for (let i = 0; i < STAGES; i++) {
    const [{ redis, url }, { redis: spare }] = [await startEmpty(), await startEmpty()];
    stages.push({ redis, pushes: listenToPushes(url), spare });
  }
});
afterAll(async () => {
  for (const { pushes } of stages) pushes.close();
  await Promise.all(stages.flatMap(({ redis, spare }) => [redis.close(), spare.close()]));
  await Promise.all(servers.map(server => server.stop()));
});

test(`every history of two tenants delivers the expected events and nothing else, ${STEPS} steps`, {
  timeout: 120_000 + STEPS * 100,
}, async () => {
  const shrinks = process.env.SHRINK !== 'no';
  const { steps, failure } = await playHistories({ stages, steps: STEPS, seed: SEED, replay: REPLAY, shrinks });
  if (failure !== undefined) throw new Error(failure);
  expect(steps).toBeGreaterThanOrEqual(REPLAY === undefined ? STEPS : 1);
});
