import { expect, it, onTestFinished } from 'vitest';
import { createRedisClock, hasFaketime } from '../../chaos/redis-clock.ts';
import { DOCUMENTED, startRedis } from '../../support/redis/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { block } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });
const DAY_SECONDS = 86_400;

it.skipIf(!hasFaketime())('a Redis clock that is 8 days ahead does not expire any events', async () => {
  const { observer, receiver } = world;
  await world.sluice.stop();
  const folder = await temporaryFolder('redis-clock');
  onTestFinished(folder.remove);
  const clock = await createRedisClock(folder.path);
  const redis = await startRedis({ appendonly: true, extra: DOCUMENTED, env: clock.env });
  onTestFinished(redis.stop);
  const sluice = await world.start({ redisUrl: redis.url });
  const publisher = world.publisherOf(sluice);
  await observer.apply(
    block(PRODUCER, 'blocked', { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } }),
  );
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']);
  expect((await publisher.publish(makeSample('waits', 'key', 'waits'))).status).toBe(202);

  await clock.set(8 * DAY_SECONDS);
  expect((await publisher.publish(makeSample('later', 'key', 'later'))).status).toBe(202);
  const isReported = async () =>
    JSON.stringify(await sluice.logLines()).includes('by 192 hours, so no expired events are removed');
  await eventually('the difference is reported', isReported);
  await clock.set(0);

  await observer.remove('Block', 'blocked', PRODUCER);
  for (const id of ['waits', 'later']) await receiver.arrival(id, 'ada');
  expect(await sluice.metric('sluice_dispatcher_expired_total')).toBe(0);
  await sluice.stop();
});
