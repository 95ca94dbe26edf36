import { expect, it } from 'vitest';
import { eventually, percentile } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, RETRY_SOON, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { subscription } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });

/** Publishes an event that fails three times. Returns the delays between its attempts, in milliseconds. */
async function pausesOf(id: string): Promise<number[]> {
  const { receiver } = world;
  receiver.behave(({ earlier }) => (earlier < 3 ? 500 : 204));
  await world.publisher.publish(makeSample(id, 'key', id));
  await eventually(`${id} is delivered`, async () => receiver.delivered('ada').has(id));
  const times = receiver.attempts.filter(attempt => attempt.id === id).map(({ atMs }) => atMs);
  return times.slice(1).map((atMs, i) => Math.round(atMs - (times[i] as number)));
}

// There are no other events that could wake up the subscription's worker.
it.each<[string, () => Promise<unknown>]>([
  ['the first of all', async () => {}],
  ['a later one', async () => {}],
  ['one after Redis lost its scripts', () => world.redis.command('SCRIPT', 'FLUSH')],
  ['one after Redis was restarted', () => world.redis.restart()],
])('retries a single event when it is due: %s', async (what, before) => {
  await before();
  const pauses = await pausesOf(what.replaceAll(' ', '-'));
  console.log(`${what}: delays of ${pauses.join(', ')} ms; the schedule has 200 ms`);
  expect(pauses).toHaveLength(3);
  // Retries are never early. They are late by at most 20% (the jitter), plus the delays of a busy machine, which can
  // affect one of them. Without a wake-up, most delays would be several seconds.
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(150);
  expect(percentile(pauses, 50)).toBeLessThan(3_000);
});

it('continues with the next event of a key immediately, after Redis has lost its scripts', async () => {
  const { receiver } = world;
  receiver.behave(() => ({ status: 204, afterMs: 300 }));
  await world.redis.command('SCRIPT', 'FLUSH');
  const startedMs = performance.now();
  for (let n = 0; n < 3; n++) await world.publisher.publish(makeSample(`lane.${n}`, 'key', 'x'));
  await eventually('all three events are delivered', async () => receiver.delivered('ada').has('lane.2'));
  const tookMs = performance.now() - startedMs;
  console.log(`three events of a key, 300 ms each: ${Math.round(tookMs)} ms`);
  // None of the events had to wait for the lease or for a retry.
  expect(receiver.attempts.filter(({ id }) => id.startsWith('lane.')).map(({ id }) => id)).toEqual([
    'lane.0',
    'lane.1',
    'lane.2',
  ]);
});

it('stops at 410 Gone with an Event, and continues with this event when the endpoint is enabled again', async () => {
  const { receiver, observer } = world;
  receiver.clear();
  receiver.behave(() => 410);
  for (let n = 0; n < 3; n++) await world.publisher.publish(makeSample(`gone.${n}`, 'key', 'x'));
  const { value: answered } = await eventually(
    'the response was 410',
    async () => receiver.attempts.at(-1)?.answeredMs,
  );
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/EndpointDisabled']);
  const tookMs = performance.now() - answered;
  console.log(`410 to Live=False: ${Math.round(tookMs)} ms`);
  await observer.untilEvent(`Subscription/${SUBSCRIPTION} EndpointDisabled`);
  // Events are still routed, charged, and held, including events published in the meantime.
  await world.publisher.publish(makeSample('gone.3', 'key', 'x'));
  receiver.behave(() => 204);
  expect(receiver.attempts.map(({ id }) => id)).toEqual(['gone.0']);

  const endpoint = { url: receiver.urlOf('ada'), retrySchedule: RETRY_SOON, enabledAt: new Date().toISOString() };
  await observer.apply(subscription('ada', PRODUCER, QUEUE, endpoint));
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await eventually('the last event is delivered', async () => receiver.delivered('ada').has('gone.3'));
  expect(receiver.attempts.map(({ id }) => id)).toEqual(['gone.0', 'gone.0', 'gone.1', 'gone.2', 'gone.3']);
});
