import { afterAll, beforeAll, expect, it } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { readPart } from '../../../src/part/inbox/find-part.ts';
import { partKeys } from '../../../src/part/keys.ts';
import { createIngest } from '../../../src/part/log/ingest.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { withClock } from '../../support/part/clock.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { block, stream } from '../support/world.ts';

const KEY = 'key';
const MINUTE_MS = 60_000;

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: [KEY] });

let redis: RedisClient;

beforeAll(async () => {
  redis = await connectRedis(world.redis.url, createLogger({ level: 'silent' }));
});

afterAll(async () => {
  await redis?.close();
});

/** Stores an event with an earlier time, as ingress would have done at that time, so that tests don't have to wait. */
async function storeOldEvent(agoMs: number): Promise<void> {
  const part = await readPart(redis, tenantId(PRODUCER), QUEUE);
  if (part === undefined) throw new Error('the part is missing');
  const thenMs = () => Date.now() - agoMs;
  const ingest = createIngest(withClock(redis, thenMs), thenMs);
  const cfgv = String(await redis.call('hget', partKeys(part).meta, 'cfgv'));
  const meta = JSON.stringify({ s: `/events/${tenantId(PRODUCER)}/${QUEUE}` });
  const event = { senderId: 'old', groupKey: KEY, meta, body: Buffer.from('old') };
  expect(await ingest(part, cfgv, [event])).toMatchObject({ answer: 'OK', events: [{ answer: 'OK' }] });
}

it('is at risk when events have waited for 80 % of the retention, until they are delivered', async () => {
  const { observer } = world;
  const risk = (is: string) =>
    observer.until(['Subscription', SUBSCRIPTION, 'ada', 'BacklogAtRisk', is], 2.5 * MINUTE_MS);
  await observer.apply(stream(PRODUCER, QUEUE, { retention: '1h' }));
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', 'True/QueueReady']);
  const target = { kind: 'CatalogStream', name: QUEUE };
  await observer.apply(block(PRODUCER, 'no-ada', { integration: 'ada', target }));
  await observer.until(['Block', 'no-ada', PRODUCER, 'Enforced', 'True/Enforced']);
  await world.sluice.kill();
  await storeOldEvent(50 * MINUTE_MS);
  await world.sluice.restart();
  const tookMs = await risk('True/NearRetention');
  console.log(`at risk after ${Math.round(tookMs)} ms`);
  await observer.untilEvent(`Subscription/${SUBSCRIPTION} NearRetention`);
  // Events which a subscription has skipped or received are not waiting for it.
  expect(await observer.conditionOf('Subscription', SUBSCRIPTION, 'bob', 'BacklogAtRisk')).toBe('');
  await observer.remove('Block', 'no-ada', PRODUCER);
  await risk('False/WithinRetention');
});
