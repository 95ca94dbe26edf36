import { expect, it } from 'vitest';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { useSmallWorld } from '../support/use-small-world.ts';

const world = useSmallWorld({
  partners: ['ada'],
  groupKeys: ['key'],
  endpoint: { timeoutSeconds: 30 },
  separateRoles: true,
});

it('records an attempt that takes longer than a dispatcher has to stop', { timeout: 120_000 }, async () => {
  const { receiver, publisher, redis } = world;
  receiver.behave(({ earlier }) => (earlier === 0 ? { status: 204, afterMs: 29_000 } : 204));
  await publisher.publish(makeSample('slow', 'key', 'x'));
  await eventually('the attempt has begun', async () => receiver.attempts.length === 1, { withinMs: 60_000 });
  const dispatcher = world.processes.get('dispatcher');
  const begunMs = performance.now();
  expect(await dispatcher?.stop()).toEqual({ code: 0, signal: null });
  // The process exits with an error after 20 s, and pods are killed after 30 s.
  console.log(`stopped after ${Math.round(performance.now() - begunMs)} ms`);
  // The number of attempts, and of claims that were lost. An event that is often lost is considered to be a cause of crashes.
  const [key = ''] = (await redis.command('KEYS', '*:try:*')) as string[];
  expect(await redis.command('HVALS', key)).toEqual([expect.stringMatching(/^1 0 \d+,\w+ aborted \w+$/)]);
  await dispatcher?.restart();
  await receiver.arrival('slow', 'ada');
  expect(receiver.attempts.map(({ id }) => id)).toEqual(['slow', 'slow']);
});
