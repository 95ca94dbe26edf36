import { expect, it } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { queueKeys } from '../../../src/redis/keys.ts';
import { eventually } from '../support/deadline.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { block, stream } from '../support/world.ts';

const KEY = 'key';
const MINUTE_MS = 60_000;

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: [KEY] });

/** An event as ingress would have stored it so long ago: no test waits for an hour. */
async function storeOldEvent(agoMs: number): Promise<void> {
  const meta = queueKeys(tenantId(PRODUCER), QUEUE).meta;
  const gen = String(await world.redis.command('HGET', meta, 'gen'));
  const q = queueKeys(tenantId(PRODUCER), QUEUE, gen);
  const id = `${Date.now() - agoMs}-0`;
  const stored = JSON.stringify({ i: 'old', s: `/events/${tenantId(PRODUCER)}/${QUEUE}` });
  await world.redis.command('XADD', q.bodies, id, 'b', 'old');
  await world.redis.command('XADD', q.events, id, 'g', KEY, 'b', '3', 'm', stored);
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
  await eventually(
    'the Event',
    async () => (await observer.events()).includes(`Subscription/${SUBSCRIPTION} NearRetention`),
    { withinMs: 5_000 },
  );
  // A subscription that is past it, or has it, does not wait for it.
  expect(await observer.conditionOf('Subscription', SUBSCRIPTION, 'bob', 'BacklogAtRisk')).toBe('');
  await observer.remove('Block', 'no-ada', PRODUCER);
  await risk('False/WithinRetention');
});
