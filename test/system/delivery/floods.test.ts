import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { countStatuses, createPublisher, makeSample, type Publication, type Publisher } from '../support/publisher.ts';
import { apply, ingressKey, stream, tenant, waitForAll } from '../support/world.ts';

const QUEUE = 'orders';
const KEYS = { shop: 'an-ingress-key-of-the-shop', north: 'an-ingress-key-of-the-north' };
/** The limits, which a flood exceeds even on a slow machine. Only 20 lookups per second are allowed. */
const PER_ADDRESS = 2_000;
const PER_KEY = 20;
/** The number of events of the sender that must not be affected. This is below the limit of its key. */
const EVENTS = 60;
const PAUSE_MS = 60;

let installed: Installation;
let ingress: Sluice;
const publishers: Publisher[] = [];

beforeAll(async () => {
  installed = await install();
  await installed.start({ role: 'controller' });
  ingress = await installed.start({
    role: 'ingress',
    env: {
      SLUICE_TRUSTED_PROXIES: '127.0.0.0/8',
      SLUICE_INGRESS_ADDRESS_LIMIT: `${PER_ADDRESS}`,
      SLUICE_INGRESS_KEY_LIMIT: `${PER_KEY}`,
    },
  });
  const { cluster } = installed;
  for (const name of ['shop', 'north'] as const) {
    await apply(cluster, [...tenant(name), stream(name, QUEUE), ingressKey(name, KEYS[name])]);
    await waitForAll(cluster, 'catalogstream', name);
    const first = makeSample('first', undefined, 'first');
    const isAccepted = async () => (await publisherOf(name).post(first)).status === 202;
    await eventually('the key is active', isAccepted);
  }
});

afterAll(async () => {
  await Promise.all(publishers.map(publisher => publisher.close()));
  await installed?.stop();
});

function publisherOf(producer: 'shop' | 'north'): Publisher {
  const { ingressUrl } = ingress;
  const publisher = createPublisher({ ingressUrl, producer, queue: QUEUE, key: KEYS[producer] });
  publishers.push(publisher);
  return publisher;
}

interface Flood {
  readonly producer: 'shop' | 'north';
  readonly addressOf: (n: number) => string;
  readonly keyOf: (n: number) => string;
}

/** Sends events as fast as possible in eight concurrent requests, until `ended` returns true. Returns all responses. */
function flood({ producer, addressOf, keyOf }: Flood, ended: () => boolean) {
  const publisher = publisherOf(producer);
  const answers: Publication[] = [];
  let sent = 0;
  const work = async () => {
    while (!ended()) {
      const n = (sent += 1);
      const sample = makeSample(`flood-${n}`, undefined, 'flood');
      answers.push(await publisher.post(sample, { key: keyOf(n), headers: { 'x-forwarded-for': addressOf(n) } }));
    }
  };
  return Promise.all(Array.from({ length: 8 }, work)).then(() => answers);
}

/** Returns the number of 429 responses with the fields of this limit. */
function countLimited(answers: readonly Publication[], limit: string, points: number): number {
  const refused = answers.filter(({ status }) => status === 429);
  for (const { headers, body } of refused) {
    expect(body.code).toBe('rate_limited');
    expect(headers['ratelimit-policy']).toBe(`"${limit}";q=${points};w=1`);
    expect(headers['ratelimit']).toMatch(new RegExp(`^"${limit}";r=\\d+;t=1$`));
    expect(headers['retry-after']).toBe('1');
  }
  return refused.length;
}

it('a sender is accepted while an address floods with wrong keys and another key exceeds its limit', async () => {
  let isOver = false;
  const startMs = performance.now();
  const wrong = flood(
    { producer: 'north', addressOf: () => '203.0.113.7', keyOf: n => `a-wrong-key-with-number-${n}` },
    () => isOver,
  );
  // The key is used from many addresses. On a fast machine, a single address would exceed its own limit, too.
  const greedy = flood(
    { producer: 'shop', addressOf: n => `198.51.100.${n % 250}`, keyOf: () => KEYS.shop },
    () => isOver,
  );
  const publisher = publisherOf('north');
  const answers: Publication[] = [];
  for (let n = 0; n < EVENTS; n++) {
    const sample = makeSample(`good-${n}`, undefined, `${n}`);
    answers.push(await publisher.post(sample, { headers: { 'x-forwarded-for': '203.0.113.9' } }));
    await delay(PAUSE_MS);
  }
  isOver = true;
  const [ofWrong, ofGreedy] = await Promise.all([wrong, greedy]);
  const seconds = (performance.now() - startMs) / 1_000;

  expect(countStatuses(answers)).toEqual({ 202: EVENTS });
  const { 401: unknown = 0, ...notUnknown } = countStatuses(ofWrong);
  const { 202: accepted = 0, ...notAccepted } = countStatuses(ofGreedy);
  const limited = {
    address: countLimited(ofWrong, 'address', PER_ADDRESS),
    key: countLimited(ofGreedy, 'key', PER_KEY),
  };
  expect(notUnknown).toEqual({ 429: limited.address });
  expect(notAccepted).toEqual({ 429: limited.key });
  // The maximum number of lookups and stored events: all initial points, and the points restored since then.
  expect(unknown).toBeGreaterThan(0);
  expect(unknown).toBeLessThanOrEqual((PER_ADDRESS / 100) * (seconds + 1));
  expect(accepted).toBeGreaterThan(PER_KEY);
  expect(accepted).toBeLessThanOrEqual(PER_KEY * (seconds + 1));
  for (const [limit, count] of Object.entries(limited)) {
    expect(count).toBeGreaterThan(0);
    expect(await ingress.metric('sluice_ingress_limited_total', { limit })).toBe(count);
  }
});

it('logs once that client addresses are not used without trusted proxies', async () => {
  const without = await installed.start({ role: 'ingress' });
  const warningsOf = async (sluice: Sluice) =>
    (await sluice.logLines()).filter(({ msg }) => String(msg).includes('SLUICE_TRUSTED_PROXIES is not set'));
  await eventually('it is logged', async () => (await warningsOf(without)).length > 0);
  expect(await warningsOf(without)).toHaveLength(1);
  expect(await warningsOf(ingress)).toEqual([]);
});
