import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { partKeys } from '../../../src/part/keys.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { type Manifest, tenant } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['a'] });
let sent = 0;

/** Sets the limits of the producer's account or removes them. */
async function limit(limits?: object): Promise<void> {
  const account = tenant(PRODUCER, { plan: 'Metered', ...(limits && { limits }) }).find(
    ({ kind }) => kind === 'Account',
  );
  await world.observer.apply(account as Manifest);
}

/**
 * Publishes ten events after a pause in which all points are restored. Returns the number of responses for each status.
 */
async function burst(): Promise<Record<string, number>> {
  await delay(1_000);
  const answers: Record<string, number> = {};
  const posts = Array.from({ length: 10 }, () => world.publisher.post(makeSample(`burst.${sent++}`, 'a', 'x')));
  for (const { status, body } of await Promise.all(posts)) {
    const answer = body.code ?? String(status);
    answers[answer] = (answers[answer] ?? 0) + 1;
  }
  return answers;
}

it('an account can publish as many events per second as its limit, a few seconds after each change', async () => {
  expect(await burst()).toEqual({ 202: 10 });
  for (const [limits, answers] of [
    [{ eventsPerSecond: 2 }, { 202: 2, rate_limited: 8 }],
    [{ eventsPerSecond: 0 }, { rate_limited: 10 }],
    [{ eventsPerSecond: 7 }, { 202: 7, rate_limited: 3 }],
    [undefined, { 202: 10 }],
  ] as const) {
    await limit(limits);
    let last: Record<string, number> = {};
    const isInForce = async () => {
      last = await burst();
      return JSON.stringify(last) === JSON.stringify(answers);
    };
    await eventually(`the limit ${JSON.stringify(limits)} is in force`, isInForce);
    expect(last).toEqual(answers);
  }
});

it('an account can store as many bytes as its limit in all of its streams, and never more', async () => {
  const size = 10_000;
  const publish = async () => {
    const { status, body } = await world.publisher.post(makeSample(`stored.${sent++}`, 'a', Buffer.alloc(size)));
    return body.code ?? String(status);
  };
  const { meta } = partKeys({ tenant: tenantId(PRODUCER), queue: QUEUE, gen: '', number: 0 });
  const stored = async () => Number(await world.redis.command('HGET', meta, 'bytes'));
  const limitBytes = (await stored()) + 25 * size;
  await limit({ storedBytes: limitBytes });
  const isKnown = async () => (await world.redis.command('HGET', meta, 'storedMax')) === `${limitBytes}`;
  await eventually('the limit is in force', isKnown);
  let last = '';
  const isFull = async () => {
    last = await publish();
    return last === 'storage_limit';
  };
  await eventually('the account is full', isFull);
  expect(await stored()).toBeLessThanOrEqual(limitBytes);
  expect(await stored()).toBeGreaterThan(limitBytes - 2 * size);
  await limit({ storedBytes: limitBytes + 10 * size });
  const isTaken = async () => (await publish()) === '202';
  await eventually('a higher limit is in force', isTaken);
  await limit();
  for (let i = 0; i < 3; i++) await eventually('there is no limit', isTaken);
});
