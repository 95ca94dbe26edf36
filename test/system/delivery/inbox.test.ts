import { afterAll, beforeAll, expect, it } from 'vitest';
import { readBalance } from '../../../src/accounts/balance.ts';
import type { Replays } from '../../../src/accounts/replays.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import type { InboxOperations } from '../../../src/plane/inbox-operations.ts';
import type { InboxReader } from '../../../src/plane/inbox-reader.ts';
import { type InboxRef, inboxMember } from '../../../src/plane/inbox-ref.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { followRedisClock } from '../../../src/redis/clock.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { readInbox } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Inboxes, inboxOfPartner, openInboxes } from '../support/inboxes.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { apply, subscription, tenant, waitForAll } from '../support/world.ts';

const ADA = publicId('Account', '', 'ada');
const SHOP = publicId('Account', '', PRODUCER);
/** A dead letter is created after two retries. */
const ENDPOINT = { retrySchedule: ['200ms', '200ms'] };

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key', 'other'], endpoint: ENDPOINT });
let redis: RedisClient;
let clock: Awaited<ReturnType<typeof followRedisClock>>;
let inbox: InboxRef;
let reader: InboxReader;
let operations: InboxOperations;
let replays: Replays;
let inboxes: Inboxes;

beforeAll(async () => {
  const log = createLogger({ level: 'silent' });
  redis = await connectRedis(world.redis.url, log);
  clock = await followRedisClock(redis, log);
  inbox = await inboxOfPartner(redis, 'ada');
  inboxes = openInboxes(redis, clock.nowMs);
  ({ reader, operations } = inboxes);
  replays = inboxes.replays();
});

afterAll(async () => {
  clock?.stop();
  await redis?.close();
});

const used = async (account: string) => (await readBalance(redis, account))?.usedTokens;
const arrivals = (id: string) => world.receiver.attempts.filter(attempt => attempt.id === id);

/** Returns the ref of the event with this id once it is in one of the states. */
async function refOf(id: string, ...states: Parameters<InboxReader['list']>[1]['states'] & object): Promise<string> {
  const { value } = await eventually(`${id} is ${states.join(' or ')}`, async () => {
    const page = await reader.list(inbox, { states, limit: 250 });
    return page.answer === 'OK' && page.events.find(({ meta }) => meta?.id === id);
  });
  return value.ref;
}

/** Checks that every event of the inbox has either ended or is still open (invariant 13). */
async function expectConserved(): Promise<void> {
  const of = { producer: PRODUCER, partner: 'ada', name: SUBSCRIPTION };
  const { open, counters } = await readInbox(world, of);
  const n = (name: string) => counters[name] ?? 0;
  expect(n('routed') + n('replayed')).toBe(open + n('delivered') + n('dead') + n('skipped') + n('expired'));
}

it("a dead letter is shown with its attempts, and its replay is delivered and charged to the partner's account", async () => {
  world.receiver.behave(({ id }) => (id === 'dead' ? 500 : 204));
  await world.publisher.publish(makeSample('dead', 'key', 'x'.repeat(20_000)));
  const ref = await refOf('dead', 'dead');
  const inspected = await reader.inspect(inbox, ref);
  if (inspected.answer !== 'OK') throw new Error(inspected.answer);
  const { event } = inspected;
  expect(event).toMatchObject({
    groupKey: 'key',
    meta: { id: 'dead', groupKey: 'key' },
    bytes: 20_000,
    tokens: 2,
    progress: { state: 'dead', attempts: 3, reason: '500' },
    replays: [],
  });
  expect(event.body?.toString()).toBe('x'.repeat(20_000));
  expect(event.progress.history.map(({ result }) => result)).toEqual(['500', '500', '500']);
  const [, second, third] = arrivals('dead').map(({ atMs }) => atMs) as [number, number, number];
  // The delay is at least 200 ms. The dispatcher's estimate of the time in Redis can be off by a few milliseconds.
  expect(third - second).toBeGreaterThan(150);

  world.receiver.behave(() => 204);
  const [shop, ada] = [await used(SHOP), (await used(ADA)) ?? 0];
  expect(await replays.price(inbox, { ref })).toMatchObject({ answer: 'OK', tokens: 2 });
  expect(await replays.start(ADA, 'rpl_1', inbox, { ref })).toMatchObject({ answer: 'OK', tokens: 2, taken: 1 });
  await eventually('the replay is delivered', async () => world.receiver.delivered('ada').has('dead'));
  const attempts = arrivals('dead');
  expect(attempts.map(({ headers }) => headers['webhook-replay'])).toEqual([undefined, undefined, undefined, 'rpl_1']);
  expect(new Set(attempts.map(({ sha256 }) => sha256)).size).toBe(1);
  expect(await used(ADA)).toBe(ada + 2);
  expect(await used(SHOP)).toBe(shop);
  await eventually('the replay is recorded', async () => {
    const again = await reader.inspect(inbox, ref);
    return again.answer === 'OK' && again.event.replays[0]?.state === 'delivered';
  });
  await expectConserved();
});

it('a skip continues the lane immediately', async () => {
  world.receiver.behave(({ id }) => (id === 'stuck' ? { status: 500, afterMs: 2_000 } : 204));
  await world.publisher.publish(makeSample('stuck', 'key', 'x'));
  await world.publisher.publish(makeSample('behind', 'key', 'x'));
  const ref = await refOf('stuck', 'inflight', 'retrying');
  expect(world.receiver.delivered('ada').has('behind')).toBe(false);
  const startedMs = performance.now();
  expect(await operations.skip(inbox, { ref })).toBe('OK');
  await eventually('the next event is delivered', async () => world.receiver.delivered('ada').has('behind'), {
    everyMs: 2,
  });
  console.log(`the next event of the key arrived ${Math.round(performance.now() - startedMs)} ms after the skip`);
  await refOf('stuck', 'skipped');
  expect(await operations.skip(inbox, { ref })).toBe('skipped');
  await eventually('no deliveries are open', async () => {
    const page = await reader.list(inbox, { states: ['pending', 'inflight', 'retrying'], limit: 9 });
    return page.answer === 'OK' && page.events.length === 0;
  });
  await expectConserved();
});

it('a range is replayed in order, each event once, even if the facade crashes after the charge', async () => {
  const ids = Array.from({ length: 20 }, (_, n) => `range.${n}`);
  world.receiver.behave(({ id }) => (id.startsWith('range') ? 500 : 204));
  const fromMs = clock.nowMs() - 1_000;
  for (const id of ids) await world.publisher.publish(makeSample(id, 'other', id));
  // The first events of the lanes become dead letters one after another. Skipping the other events is free.
  const last = await refOf('range.19', 'pending', 'inflight', 'retrying');
  await refOf('range.2', 'dead');
  expect(await operations.skipUpTo(inbox, last, { groupKey: 'other' })).toMatchObject({
    answer: 'OK',
    cursor: undefined,
  });
  // An attempt that was in progress when its event was skipped could be received between the attempts of the replay.
  const claims = () => world.sluice.metric('sluice_dispatcher_claims');
  await eventually('no attempts are in progress', async () => (await claims()) === 0);
  const states = ['dead', 'skipped'] as const;
  const range = { states, fromMs, toMs: clock.nowMs() + 1_000 };
  const price = await replays.price(inbox, range);
  const { events, tokens } = price.answer === 'OK' ? price : { events: [], tokens: 0 };
  const count = events.length;
  expect(count).toBeGreaterThanOrEqual(20);
  world.receiver.clear();
  world.receiver.behave(() => 204);
  const ada = (await used(ADA)) ?? 0;

  // A process that crashes after the charge, with a clock that is 40 s behind, so the dispatcher's sweep checks it
  // immediately. It crashes before reading the charged replay because the sweep may already have completed it.
  let isCharged = false;
  const dies = inboxes.replays({
    redis: {
      ...redis,
      run: async (name, keys, args) => {
        const answer = await redis.run(name, keys, args);
        if (name === 'debit') isCharged = true;
        return answer;
      },
      readHash: async key => {
        if (isCharged) throw new Error('crashed');
        return redis.readHash(key);
      },
    },
    nowMs: () => clock.nowMs() - 40_000,
  });
  await expect(dies.start(ADA, 'rpl_2', inbox, range)).rejects.toThrow('crashed');
  const again = () => arrivals('range.19').length > 0;
  await eventually('the range is delivered', async () => again());
  const replayed = world.receiver.attempts.filter(({ id }) => id.startsWith('range'));
  expect(replayed.map(({ id }) => id)).toEqual(ids);
  expect(new Set(replayed.map(({ headers }) => headers['webhook-replay']))).toEqual(new Set(['rpl_2']));
  expect(await used(ADA)).toBe(ada + tokens);
  await eventually('the replay has ended', async () => {
    return (await redis.call('zcard', accountKeys(ADA).replays)) === 0;
  });
  expect(await replays.start(ADA, 'rpl_2', inbox, range)).toMatchObject({ answer: 'OK', complete: true, taken: count });
  expect(await used(ADA)).toBe(ada + tokens);
  await expectConserved();
});

it('a subscription without an endpoint can pull, acknowledge, and replay', async () => {
  await apply(world.cluster, [...tenant('eve', { plan: 'Free', includedTokens: 1 })]);
  await world.observer.apply({
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'Integration',
    metadata: { name: 'eve', namespace: PRODUCER },
    spec: { workspace: 'eve' },
  });
  await apply(world.cluster, [
    subscription('eve', PRODUCER, QUEUE, undefined),
    {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'Activation',
      metadata: { name: 'eve-key', namespace: PRODUCER },
      spec: { integration: 'eve', groupKey: 'key' },
    },
  ]);
  await waitForAll(world.cluster, 'subscription', 'eve', 'Live');
  await waitForAll(world.cluster, 'activation', PRODUCER, 'Effective');
  const of = await inboxOfPartner(redis, 'eve');
  for (const id of ['pull.0', 'pull.1']) await world.publisher.publish(makeSample(id, 'key', id));
  const pulled: string[] = [];
  for (const want of ['pull.0', 'pull.1']) {
    const { value } = await eventually(want, async () => {
      const answer = await operations.pull(of, { limit: 10 });
      return answer.answer === 'OK' && answer.events.find(({ meta }) => meta.id === want);
    });
    expect(value.body.toString()).toBe(want);
    expect(await operations.acknowledge(of, [{ ref: value.ref }])).toEqual({ answer: 'OK', answers: ['OK'] });
    pulled.push(value.ref);
  }
  const [first, second] = pulled as [string, string];
  const eve = publicId('Account', '', 'eve');
  expect(await replays.start(eve, 'rpl_3', of, { ref: first })).toMatchObject({ answer: 'OK', taken: 1 });
  expect(await replays.start(eve, 'rpl_4', of, { ref: second })).toEqual({ answer: 'SHORT' });
  expect(await operations.pull(of, { limit: 10 })).toMatchObject({ events: [{ ref: first, replayId: 'rpl_3' }] });
  const delivery = { ref: first, replayId: 'rpl_3' };
  expect(await operations.acknowledge(of, [delivery])).toEqual({ answer: 'OK', answers: ['OK'] });
  expect(inboxMember(of)).not.toBe(inboxMember(inbox));
});
