import { expect, test } from 'vitest';
import { type DeliverDeps, deliver, POISON_LAPSES } from './deliver.ts';
import type { AttemptRequest, AttemptResult } from './endpoint-client.ts';
import type { OpenSubscription } from './subscription.ts';

const NOW = 1_800_000_000_000;
const CLAIM = { lane: 'k', ref: '0'.repeat(15), attempts: 0, lapses: 0 };
const EVENT = { meta: { id: 'e1', groupKey: 'k', time: NOW, source: '/s' }, body: Buffer.from('body') };
const subscription: OpenSubscription = {
  cfgv: 'v',
  source: { tenant: 't', queue: 'q', gen: 'g' },
  endpoint: { url: 'https://a.example/', timeoutMs: 7_000, retryMs: [1_000, 60_000], headers: {}, secretVersion: 1 },
  buildHeaders: (meta, _body, timestampMs, replayId) => [
    'webhook-id',
    meta.id,
    'webhook-timestamp',
    String(timestampMs),
    ...(replayId === undefined ? [] : ['webhook-replay', replayId]),
  ],
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

async function run(result: AttemptResult, claim = CLAIM, event: typeof EVENT | undefined = EVENT, monotonicMs = 0) {
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
    onAttempt: (_result, completion) => told.push(completion.outcome),
  };
  return { completion: await deliver(deps, subscription, claim, 'token', 0, event), asked, told };
}

const base = { lane: 'k', ref: CLAIM.ref, token: 'token' };

test('2xx is delivered, with the status in the record', async () => {
  const { completion, asked, told } = await run(answer({ outcome: 'delivered', reason: 'http_2xx', status: 202 }));
  expect(completion).toEqual({
    ...base,
    outcome: 'delivered',
    record: `delivered ${NOW} 1 202 1`,
    attempted: 'Succeeded',
  });
  expect(asked).toEqual([
    {
      url: 'https://a.example/',
      timeoutMs: 7_000,
      headers: ['webhook-id', 'e1', 'webhook-timestamp', String(NOW + 7)],
      body: EVENT.body,
    },
  ]);
  expect(told).toEqual(['delivered']);
});

test.each([
  [0, 1_100],
  [1, 66_000],
])('after %d failed attempts the next one waits for the schedule and half of its jitter', async (attempts, waitMs) => {
  const { completion } = await run(answer({ status: 500 }), { ...CLAIM, attempts });
  const [attempt, responseBody] = [`${NOW},500,1`, Buffer.from('no')];
  const answered = { attempted: 'HttpError', attempt, responseBody };
  expect(completion).toEqual({ ...base, outcome: 'failed', dueMs: NOW + waitMs, ...answered });
});

test('410 leaves the event open, whatever is left of the schedule; of an answer that was longer it is said', async () => {
  const gone = answer({ outcome: 'disabled', reason: 'gone', status: 410, truncated: true });
  for (const attempts of [0, 9]) {
    const { completion, told } = await run(gone, { ...CLAIM, attempts });
    const answered = { attempted: 'HttpError', responseBody: Buffer.from('no'), responseTruncated: true };
    expect(completion).toEqual({ ...base, outcome: 'gone', attempt: `${NOW},410,1`, ...answered });
    expect(told).toEqual(['gone']);
  }
});

test('Retry-After lengthens the wait', async () => {
  const { completion } = await run(answer({ status: 503, retryAfterMs: 30_000 }));
  expect(completion.dueMs).toBe(NOW + 33_000);
});

test('when the schedule is used up it is a dead letter, with the status or why there was none', async () => {
  const last = { ...CLAIM, attempts: 2 };
  expect((await run(answer({ status: 500 }), last)).completion.record).toBe(`dead ${NOW} 3 500 1`);
  expect((await run(answer({ reason: 'timeout' }), last)).completion).toEqual({
    ...base,
    outcome: 'dead',
    attempted: 'Timeout',
    record: `dead ${NOW} 3 timeout 1`,
    responseBody: Buffer.from('no'),
  });
});

test.each([
  ['expired: retention took it', CLAIM, undefined, 0, 'expired'],
  ['dead: its claims lapsed too often', { ...CLAIM, lapses: POISON_LAPSES }, EVENT, 0, 'dead'],
  ['released: it waited too long for the wire', CLAIM, EVENT, 1_001, 'released'],
] as const)('%s, without an attempt', async (_name, claim, event, waited, outcome) => {
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
    claim,
    'token',
    0,
    event,
  );
  expect(result.outcome).toBe(outcome);
  expect(result.attempted).toBeUndefined();
  expect(deps).toEqual([]);
});

test('a claim that is on the wire within a second goes out', async () => {
  const { asked } = await run(answer({ status: 500 }), CLAIM, EVENT, 1_000);
  expect(asked).toHaveLength(1);
});

test.each(['k\x01rpl_1', `k\x01rpl_1\0${CLAIM.ref}`])('a replay says so: lane %j', async lane => {
  const { asked } = await run(answer({ status: 500 }), { ...CLAIM, lane });
  expect(asked[0]?.headers.slice(-2)).toEqual(['webhook-replay', 'rpl_1']);
});

test('an attempt that the dispatcher itself ended says nothing of the endpoint', async () => {
  const { completion } = await run(answer({ reason: 'aborted' }));
  expect(completion.outcome).toBe('failed');
  expect(completion.attempted).toBeUndefined();
});
