import { describe, expect, test } from 'vitest';
import { type DeliverDeps, type Delivery, deliver, POISON_LAPSES } from './deliver.ts';
import type { AttemptRequest, AttemptResult } from './endpoint-client.ts';
import { eventHeaders } from './headers.ts';
import type { OpenSubscription } from './subscription.ts';

const NOW = 1_800_000_000_000;
const DELIVERY = { attempts: 0, lapses: 0, replay: undefined, isTest: false, acceptedMs: NOW, claimedAtMs: 0 };
const META = { id: 'e1', groupKey: 'k', time: NOW, source: '/s' };
const EVENT = { meta: META, headers: eventHeaders(META), body: Buffer.from('body') };
const subscription: OpenSubscription = {
  cfgv: 'v',
  source: { tenant: 't', queue: 'q', gen: 'g' },
  endpoint: {
    url: 'https://a.example/',
    timeoutMs: 7_000,
    retryMs: [1_000, 60_000],
    headers: {},
    salt: 'a-salt',
    secretVersion: 1,
  },
  buildHeaders: ({ id }, _body, timestampMs, replayId) =>
    `webhook-id: ${id}\r\nwebhook-timestamp: ${timestampMs}\r\n${replayId === undefined ? '' : `webhook-replay: ${replayId}\r\n`}`,
  validUntilMs: Number.POSITIVE_INFINITY,
};
const answer = (change: Partial<AttemptResult>): AttemptResult => ({
  outcome: 'failed',
  reason: 'http_5xx',
  latencyMs: 1,
  responseBody: Buffer.from('no'),
  truncated: false,
  ...change,
});

async function run(
  result: AttemptResult,
  delivery: Delivery = DELIVERY,
  event: typeof EVENT | undefined = EVENT,
  monotonicMs = 0,
) {
  const asked: AttemptRequest[] = [];
  const told: string[] = [];
  const deps: DeliverDeps = {
    attempt: async request => {
      asked.push(request);
      return result;
    },
    nowMs: () => NOW,
    wallMs: () => NOW + 7,
    monotonicMs: () => monotonicMs,
    random: () => 0.5,
    onAttempt: (_result, outcome) => told.push(outcome),
  };
  return { ending: await deliver(deps, subscription, delivery, event), asked, told };
}

test('a 2xx is delivered, with the status as its reason', async () => {
  const { ending, asked, told } = await run(answer({ outcome: 'delivered', reason: 'http_2xx', status: 202 }));
  expect(ending).toEqual({ outcome: 'delivered', reason: '202', latencyMs: 1, attempted: 'Succeeded' });
  expect(asked).toEqual([
    {
      url: 'https://a.example/',
      timeoutMs: 7_000,
      headers: `webhook-id: e1\r\nwebhook-timestamp: ${NOW + 7}\r\n`,
      body: EVENT.body,
      maySend: expect.any(Function),
    },
  ]);
  expect(told).toEqual(['delivered']);
});

test.each([
  ['its claim is a second old', 1_001, true],
  ['the process may have lost its claims', 0, false],
])(
  'is released if %s when the connection is open, and does not count as an attempt',
  async (_name, laterMs, holdsClaims) => {
    const told: string[] = [];
    let monotonicMs = 0;
    const deps: DeliverDeps = {
      async attempt({ maySend }) {
        expect(maySend?.()).toBe(true);
        monotonicMs = laterMs;
        holds = holdsClaims;
        expect(maySend?.()).toBe(false);
        return answer({ reason: 'aborted', isUnsent: true });
      },
      nowMs: () => NOW,
      wallMs: () => NOW,
      monotonicMs: () => monotonicMs,
      random: () => 0.5,
      holdsClaims: () => holds,
      onAttempt: (_result, outcome) => told.push(outcome),
    };
    let holds = true;
    expect(await deliver(deps, subscription, DELIVERY, EVENT)).toEqual({ outcome: 'released', reason: 'released' });
    expect(told).toEqual([]);
  },
);

test.each([
  [0, 1_100],
  [1, 66_000],
])(
  'after %d failed attempts, the next attempt waits for the schedule and half of its jitter',
  async (attempts, waitMs) => {
    const { ending } = await run(answer({ status: 500 }), { ...DELIVERY, attempts });
    const answered = { attempted: 'HttpError', reason: '500', latencyMs: 1, responseBody: Buffer.from('no') };
    expect(ending).toEqual({ outcome: 'failed', dueMs: NOW + waitMs, ...answered });
  },
);

test('keeps the event open after a 410, even if there are retries left', async () => {
  const gone = answer({ outcome: 'disabled', reason: 'gone', status: 410, truncated: true });
  for (const attempts of [0, 9]) {
    const { ending, told } = await run(gone, { ...DELIVERY, attempts });
    const answered = { attempted: 'HttpError', responseBody: Buffer.from('no'), responseTruncated: true };
    expect(ending).toEqual({ outcome: 'gone', reason: '410', latencyMs: 1, ...answered });
    expect(told).toEqual(['gone']);
  }
});

test('Retry-After increases the delay', async () => {
  const { ending } = await run(answer({ status: 503, retryAfterMs: 30_000 }));
  expect(ending.dueMs).toBe(NOW + 33_000);
});

test('becomes a dead letter after the last retry, with the status or the reason', async () => {
  const last = { ...DELIVERY, attempts: 2 };
  expect((await run(answer({ status: 500 }), last)).ending).toMatchObject({ outcome: 'dead', reason: '500' });
  expect((await run(answer({ reason: 'timeout' }), last)).ending).toEqual({
    outcome: 'dead',
    attempted: 'Timeout',
    reason: 'timeout',
    latencyMs: 1,
    responseBody: Buffer.from('no'),
  });
});

test.each([
  ['expired: retention took it', DELIVERY, undefined, 0, 'expired'],
  ['dead: its claims lapsed too often', { ...DELIVERY, lapses: POISON_LAPSES }, EVENT, 0, 'dead'],
  ['released: it waited too long for the wire', DELIVERY, EVENT, 1_001, 'released'],
] as const)('%s, without an attempt', async (_name, delivery, event, waited, outcome) => {
  const deps: string[] = [];
  const result = await deliver(
    {
      attempt: async () => {
        deps.push('attempt');
        return answer({});
      },
      nowMs: () => NOW,
      wallMs: () => NOW,
      monotonicMs: () => waited,
      random: () => 0,
      onAttempt: () => {},
    },
    subscription,
    delivery,
    event,
  );
  expect(result.outcome).toBe(outcome);
  expect(result.attempted).toBeUndefined();
  expect(deps).toEqual([]);
});

test('sends a claim that is started within a second', async () => {
  const { asked } = await run(answer({ status: 500 }), DELIVERY, EVENT, 1_000);
  expect(asked).toHaveLength(1);
});

describe('an endpoint that requires consent', () => {
  /** The duration of the consent request, in milliseconds. */
  async function ask(refusal: AttemptResult | undefined, tookMs: number) {
    const made: string[] = [];
    let nowMs = 0;
    const deps: DeliverDeps = {
      attempt: async () => {
        made.push('attempt');
        return answer({ outcome: 'delivered', reason: 'http_2xx', status: 200 });
      },
      askConsent: async endpoint => {
        made.push(`ask ${endpoint.url}`);
        nowMs += tookMs;
        return refusal;
      },
      nowMs: () => NOW,
      wallMs: () => NOW,
      monotonicMs: () => nowMs,
      random: () => 0,
      onAttempt: ({ reason }, outcome) => made.push(`${outcome} ${reason}`),
    };
    return { ending: await deliver(deps, subscription, DELIVERY, EVENT), made };
  }

  test('receives the event after it has agreed', async () => {
    const { ending, made } = await ask(undefined, 1_000);
    expect(ending.outcome).toBe('delivered');
    expect(made).toEqual(['ask https://a.example/', 'attempt', 'delivered http_2xx']);
  });

  test('does not receive events until it has agreed, and the attempt fails', async () => {
    const { ending, made } = await ask(answer({ reason: 'consent_missing' }), 9_000);
    expect(ending).toMatchObject({ outcome: 'failed', reason: 'consent_missing', attempted: 'ConsentMissing' });
    expect(made).toEqual(['ask https://a.example/', 'failed consent_missing']);
  });

  test('does not receive the event if it responded so late that the gate may have closed', async () => {
    const { ending, made } = await ask(undefined, 1_001);
    expect(ending).toEqual({ outcome: 'released', reason: 'released' });
    expect(made).toEqual(['ask https://a.example/']);
  });
});

test('adds webhook-replay to a replay', async () => {
  const { asked } = await run(answer({ status: 500 }), { ...DELIVERY, replay: 'rpl_1' });
  expect(asked[0]?.headers).toMatch(/\r\nwebhook-replay: rpl_1\r\n$/);
});

test('ignores attempts that the dispatcher has ended for the health of the endpoint', async () => {
  const { ending } = await run(answer({ reason: 'aborted' }));
  expect(ending.outcome).toBe('failed');
  expect(ending.attempted).toBeUndefined();
});

test('a test event that fails is not repeated, and a 410 does not disable the endpoint', async () => {
  const test = { ...DELIVERY, isTest: true };
  expect((await run(answer({ status: 500 }), test)).ending.outcome).toBe('dead');
  expect((await run(answer({ outcome: 'disabled', reason: 'gone', status: 410 }), test)).ending.outcome).toBe('dead');
});
