import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRandom } from '../../support/random.ts';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf, readInbox, readReasons, readSeries } from '../support/audit.ts';
import { eventually, spread } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { countStatuses, createPublisher, makeSample, makeSamples, type Publisher } from '../support/publisher.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import {
  activation,
  apply,
  ingressKey,
  integration,
  stream,
  subscription,
  tenant,
  waitForAll,
} from '../support/world.ts';

const KEY = 'ingress-key-of-the-shop';
const PARTNERS = ['ada', 'bob', 'cy'];
const GROUP_KEYS = Array.from({ length: 100 }, (_, i) => `customer ${i} é`);
/** Group keys that are not active for any partner. `cy` has ten more inactive keys. */
const STRANGERS = Array.from({ length: 5 }, (_, i) => `stranger-${i}`);
const NOT_FOR_CY = new Set(GROUP_KEYS.slice(0, 10));
const RETRIES = Array.from({ length: 16 }, () => '200ms');

let installed: Installation;
let sluice: Sluice;
let receiver: Receiver;
let publisher: Publisher;

beforeAll(async () => {
  installed = await install();
  const { cluster } = installed;
  receiver = await startReceiver();
  const activations = PARTNERS.flatMap(partner =>
    GROUP_KEYS.filter(key => partner !== 'cy' || !NOT_FOR_CY.has(key)).map(key => activation('shop', partner, key)),
  );
  await apply(cluster, [
    ...tenant('shop'),
    ...PARTNERS.flatMap(name => tenant(name)),
    stream('shop', 'orders'),
    ingressKey('shop', KEY),
    ...PARTNERS.map(partner => integration('shop', partner)),
    ...PARTNERS.map(partner =>
      subscription(partner, 'shop', 'orders', { url: receiver.urlOf(partner), retrySchedule: RETRIES }),
    ),
    ...activations,
  ]);
  sluice = await installed.start();
  await waitForAll(cluster, 'activation', 'shop', 'Effective');
  for (const partner of PARTNERS) await waitForAll(cluster, 'subscription', partner, 'Live');
  publisher = createPublisher({ ingressUrl: sluice.ingressUrl, producer: 'shop', queue: 'orders', key: KEY });
});

afterAll(async () => {
  await publisher?.close();
  await receiver?.close();
  await installed?.stop();
});

const expectedFor = (partner: string, samples: ReturnType<typeof makeSamples>) =>
  samples.filter(
    ({ groupKey }) => GROUP_KEYS.includes(groupKey ?? '') && (partner !== 'cy' || !NOT_FOR_CY.has(groupKey ?? '')),
  );

it('delivers each of 10,000 events to every eligible subscription, in order and with unchanged bytes', async () => {
  const samples = makeSamples({ groupKeys: [...GROUP_KEYS, ...STRANGERS], perKey: 100 });
  const keyless = Array.from({ length: 20 }, (_, i) => makeSample(`keyless.${i}`, undefined, `without a key ${i}`));
  const random = createRandom(7);
  // One of ten attempts results in an error, or in a lost response.
  receiver.behave(({ subscription: to }) => (to !== 'bob' || random() >= 0.1 ? 204 : random() < 0.7 ? 500 : 'lost'));

  const startedMs = performance.now();
  const published = await publisher.publishAll([...samples, ...keyless]);
  const publishedMs = performance.now() - startedMs;
  expect(countStatuses(published.values())).toEqual({ 202: 10_520 });

  const expected = new Map(PARTNERS.map(partner => [partner, expectedFor(partner, samples)]));
  const { tookMs } = await eventually(
    'all events are delivered',
    async () => PARTNERS.every(partner => receiver.delivered(partner).size >= (expected.get(partner)?.length ?? 0)),
    { withinMs: 180_000 },
  );
  const latencies = (partner: string) =>
    receiver.attempts
      .filter(attempt => attempt.subscription === partner && attempt.earlier === 0)
      .map(({ id, atMs }) => atMs - (published.get(id)?.answeredMs ?? Number.NaN));
  console.log(
    `published ${samples.length} in ${Math.round(publishedMs)} ms (answers ${spread([...published.values()].map(({ sentMs, answeredMs }) => answeredMs - sentMs))}), ` +
      `the last delivery ${Math.round(tookMs)} ms later; from 202 to arrival: ${PARTNERS.map(partner => `${partner} ${spread(latencies(partner))}`).join('; ')}`,
  );

  for (const partner of PARTNERS) expect(faultsOf(receiver, partner, expected.get(partner) ?? [])).toEqual([]);
  const attemptsAtBob = receiver.attempts.filter(attempt => attempt.subscription === 'bob');
  const failures = attemptsAtBob.filter(({ status }) => status !== 204).length;
  expect(attemptsAtBob.length).toBe((expected.get('bob')?.length ?? 0) + failures);
  expect(failures).toBeGreaterThan(500);
});

it('accounts for every event as routed or delivered, or with the reason', async () => {
  const inbox = (partner: string) => readInbox(installed, { producer: 'shop', partner, name: 'shop-orders' });
  for (const partner of PARTNERS) {
    const wanted = partner === 'cy' ? 9_000 : 10_000;
    const { value } = await eventually('all attempts have ended', async () => {
      const state = await inbox(partner);
      return state.open === 0 && state;
    });
    expect(value.routed).toHaveLength(wanted);
    expect(value.counters).toEqual({ routed: wanted, delivered: wanted });
    expect(value.claimed).toBe(0);
  }
  const counted = async () => {
    const { eventsIn, deliveries, notRouted, tokens } = await readSeries(installed.redis, 'shop');
    return eventsIn === 10_520 && deliveries === 29_000 && notRouted === 520 && tokens === 29_000;
  };
  await eventually('the series contains all events', counted);
  expect(receiver.attempts.filter(({ groupKey }) => STRANGERS.includes(groupKey))).toEqual([]);
  // 20 events without a key, 500 events of unknown keys for three partners each, and 1,000 events that only cy does not
  // receive.
  expect(await readReasons(installed.redis, 'shop', 'orders')).toEqual({ missing_group_key: 20, not_activated: 2_500 });
  expect(await sluice.metric('sluice_ingress_not_routed_total', { reason: 'missing_group_key' })).toBe(20);
  expect(await sluice.metric('sluice_ingress_not_routed_total', { reason: 'not_activated' })).toBe(500);
  expect(await sluice.metric('sluice_ingress_routed_total')).toBe(29_000);
});
