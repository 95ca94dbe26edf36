import { expect, test } from 'vitest';
import type { EventProgress } from '../../core/events/event-state.ts';
import { rowText } from '../../part/gate/subscription-row.ts';
import { refOfMs } from '../../part/lanes/ref.ts';
import { type DeliveryFacts, reportDelivery } from './delivery-report.ts';

const AT_MS = 1_800_000_000_000;
const ROW = {
  route: 'open',
  send: 'open',
  unordered: false,
  cap: 64,
  since: refOfMs(1),
  cfgv: '1',
  integration: 'i',
} as const;

const progressOf = (state: EventProgress['state'], ...history: [number, string][]): EventProgress => ({
  state,
  attempts: history.length,
  history: history.map(([afterMs, result]) => ({ atMs: AT_MS + afterMs, result, latencyMs: 0 })),
});

const productionOf = (send: 'open' | 'held', hasEndpoint = true) => ({
  row: rowText({ ...ROW, send }),
  health: '',
  hasEndpoint,
  skipped: '',
});

/** The facts of an event that was sent to an open subscription. */
const FACTS: DeliveryFacts = {
  run: 'run-1',
  delivery: { integration: 'i', sub: 'sub_x', slot: 's', ref: refOfMs(AT_MS) },
  bytes: 16_385,
  simulation: { failCode: 503, failCount: 2 },
  progress: progressOf('retrying', [0, '503'], [7, '503']),
  sent: { retryMs: [5_000, 300_000], headers: [['webhook-id', 'e']] },
  production: productionOf('open'),
};

test('a report contains the price, the headers, and how long each attempt has waited', () => {
  expect(reportDelivery(FACTS)).toMatchObject({
    subscriptionPublicId: 'sub_x',
    state: 'retrying',
    heldBy: null,
    tokens: 2,
    attempts: [
      { at: '2027-01-15T08:00:00.000Z', status: '503', waitedMs: 0 },
      { at: '2027-01-15T08:00:00.007Z', status: '503', waitedMs: 7 },
    ],
    headers: [{ name: 'webhook-id', value: 'e' }],
  });
});

test('the expected delays have the jitter of this delivery', () => {
  const delays = (facts: Partial<DeliveryFacts>) =>
    reportDelivery({ ...FACTS, ...facts }).expected?.attempts.map(({ jitteredDelayMs }) => jitteredDelayMs);
  const [first, ...retries] = delays({}) ?? [];
  expect(first).toBe(0);
  expect(retries).toHaveLength(2);
  expect(delays({ run: 'run-2' })).not.toEqual(delays({}));
  expect(delays({ delivery: { ...FACTS.delivery, sub: 'sub_y' } })).not.toEqual(delays({}));
});

test('before the first attempt, there is nothing to expect, and there are no headers', () => {
  const facts = { ...FACTS, progress: progressOf('pending'), sent: undefined };
  expect(reportDelivery(facts)).toMatchObject({ expected: null, headers: null, attempts: [] });
});

test.each([
  ['a subscription that is not known', undefined, 'no_endpoint'],
  ['a subscription without an endpoint', productionOf('open', false), 'no_endpoint'],
  ['a subscription without an endpoint that is held', productionOf('held', false), 'no_endpoint'],
  ['a subscription that is held', productionOf('held'), 'endpoint_held'],
  ['an open subscription', productionOf('open'), null],
])('an open delivery of %s shows what holds it, and an ended one does not', (_what, production, heldBy) => {
  for (const state of ['pending', 'inflight', 'retrying'] as const) {
    expect(reportDelivery({ ...FACTS, production, progress: progressOf(state) }).heldBy).toBe(heldBy);
  }
  for (const state of ['delivered', 'dead', 'skipped', 'expired'] as const) {
    expect(reportDelivery({ ...FACTS, production, progress: progressOf(state) }).heldBy).toBeNull();
  }
});
