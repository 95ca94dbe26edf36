import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { tokensOf } from '../../../src/core/events/tokens.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { partKeys } from '../../../src/part/keys.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf, readSeries } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { countStatuses, makeSample, makeSamples, type Sample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { type Manifest, tenant } from '../support/world.ts';

const PARTNERS = ['ada', 'bob'];
const GROUP_KEYS = ['a', 'b', 'c', 'd'];
const ACCOUNT = publicId('Account', '', PRODUCER);

const world = useSmallWorld({ partners: PARTNERS, groupKeys: GROUP_KEYS, separateRoles: true });
/** All events accepted by all tests so far. */
const accepted: Sample[] = [];

/** Sets the number of tokens of the producer's account. */
async function include(includedTokens: number): Promise<void> {
  const account = tenant(PRODUCER, { plan: 'Free', includedTokens }).find(({ kind }) => kind === 'Account');
  await world.observer.apply(account as Manifest);
}

const hashField = async (key: string, field: string): Promise<number> =>
  Number((await world.redis.command('HGET', key, field)) ?? 0);

const used = () => hashField(accountKeys(ACCOUNT).meta, 'used');
const costOf = (samples: readonly Sample[]) => samples.reduce((sum, { body }) => sum + tokensOf(body.length), 0);

async function publishAll(samples: readonly Sample[]): Promise<void> {
  const published = await world.publisher.publishAll(samples, 4);
  expect(countStatuses(published.values())).toEqual({ 202: samples.length });
  accepted.push(...samples);
}

/** Waits until everything is delivered, and expects that the account and the series match an independent count. */
async function compare(crashes = 0): Promise<void> {
  const { receiver } = world;
  const everything = async () => PARTNERS.every(partner => receiver.delivered(partner).size >= accepted.length);
  await eventually('all events are delivered', everything);
  for (const partner of PARTNERS) expect(faultsOf(receiver, partner, accepted, { crashes })).toEqual([]);
  const count = costOf(accepted);
  const isCharged = async () => (await used()) === PARTNERS.length * count;
  await eventually('the account contains all tokens', isCharged);
  const isCounted = async () => (await readSeries(world.redis, PRODUCER)).tokens === PARTNERS.length * count;
  await eventually('the series contains all tokens', isCounted);
}

it('pauses with a condition when the tokens are spent, and continues in order after new tokens are added', async () => {
  const { observer, receiver } = world;
  await include(60);
  await observer.until(['Account', PRODUCER, undefined, 'Ready', 'True/LedgerReady']);
  const planOf = (key: string) => world.redis.command('HGET', key, 'plan');
  const part = partKeys({ tenant: tenantId(PRODUCER), queue: QUEUE, gen: '', number: 0 });
  const enforced = async () =>
    (await Promise.all([accountKeys(ACCOUNT).meta, part.meta].map(planOf))).every(plan => plan === 'Free');
  await eventually('the part is held back', enforced);
  await publishAll(makeSamples({ groupKeys: GROUP_KEYS, perKey: 12 }));
  const spent: Parameters<typeof observer.until>[0] = [
    'Workspace',
    PRODUCER,
    undefined,
    'InsufficientTokens',
    'True/TokensSpent',
  ];
  const shownMs = await observer.until(spent);
  for (const partner of PARTNERS) {
    await observer.until(['Subscription', SUBSCRIPTION, partner, 'Live', 'False/InsufficientTokens']);
  }
  // 48 events for two partners each, and 60 tokens: the events that were paid for are delivered, and the others wait.
  const paid = async () => PARTNERS.every(partner => receiver.delivered(partner).size === 30);
  await eventually('all events that were paid for are delivered', paid);
  await delay(2_000);
  expect(PARTNERS.map(partner => receiver.delivered(partner).size)).toEqual([30, 30]);
  await eventually('the account contains all tokens', async () => (await used()) === 60);
  expect(await observer.conditionOf('Subscription', SUBSCRIPTION, 'ada')).toBe('True/Admitted');

  const toppedUpMs = performance.now();
  await include(10_000);
  const goesOn = async () => receiver.delivered('ada').size > 30;
  const { tookMs } = await eventually('the delivery continues', goesOn);
  await observer.until(['Workspace', PRODUCER, undefined, 'InsufficientTokens', 'False/TokensLeft']);
  for (const partner of PARTNERS) await observer.until(['Subscription', SUBSCRIPTION, partner, 'Live', 'True/Live']);
  const clearedMs = performance.now() - toppedUpMs;
  await compare();
  console.log(
    `shown ${Math.round(shownMs)} ms after the last 202; topped up, the next delivery came after ${Math.round(tookMs)} ms, ` +
      `the conditions were gone after ${Math.round(clearedMs)} ms`,
  );
});

it('charges the same as an independent count when the dispatcher and Redis are killed midway', async () => {
  const { receiver } = world;
  const sizes = [0, 1, 16_383, 16_384, 16_385, 32_768, 262_144];
  const samples = Array.from({ length: 40 }, (_, n) => n).flatMap(n =>
    GROUP_KEYS.map((groupKey, k) =>
      makeSample(`sized.${groupKey}.${n}`, groupKey, Buffer.alloc(sizes[(n + k) % sizes.length] as number, n)),
    ),
  );
  const before = receiver.delivered('ada').size;
  const publishing = publishAll(samples);
  publishing.catch(() => {});
  for (const share of [0.2, 0.5]) {
    const some = async () => receiver.delivered('ada').size > before + share * samples.length;
    await eventually('some events are delivered', some);
    const dispatcher = world.processes.get('dispatcher') as Sluice;
    await Promise.all([dispatcher.kill('SIGKILL'), ...(share === 0.5 ? [world.redis.kill('SIGKILL')] : [])]);
    if (share === 0.5) await world.redis.restart();
    await dispatcher.restart();
  }
  await publishing;
  await compare(2);
});

it('delivers to a partner whose own account has no tokens', async () => {
  const account = tenant('ada', { plan: 'Free', includedTokens: 0 }).find(({ kind }) => kind === 'Account');
  await world.observer.apply(account as Manifest);
  const { meta } = accountKeys(publicId('Account', '', 'ada'));
  const plan = async () => String(await world.redis.command('HGET', meta, 'plan'));
  await eventually('the account has no tokens left', async () => (await plan()) === 'Free');
  expect(await hashField(meta, 'included')).toBe(0);
  const sample = makeSample('partner.broke', 'a', 'x'.repeat(40_000));
  await publishAll([sample]);
  await eventually('the event is delivered', async () => world.receiver.delivered('ada').has(sample.id));
  expect(await hashField(meta, 'used')).toBe(0);
});
