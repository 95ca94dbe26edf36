import { expect, test } from 'vitest';
import { judge, type Records } from './judge.ts';
import type { Counts } from './part-reader.ts';
import { type Arrival, type SentEvent, type Subscription } from './record.ts';

const event = (id: string, key: string, bytes = 100): SentEvent => ({
  id,
  key,
  bytes,
  plannedMs: 0,
  acknowledgedMs: 1,
});
const at = (atMs: number, subscription: Subscription, id: string, key = 'key-1'): Arrival => ({
  subscription,
  id,
  key,
  atMs,
});
const counts = (routed: number, more: Partial<Counts> = {}): Counts => ({
  routed,
  delivered: routed,
  pending: 0,
  inflight: 0,
  retrying: 0,
  dead: 0,
  skipped: 0,
  expired: 0,
  ended: 0,
  counted: 0,
  ...more,
});

/**
 * Two events of a key that is active for all subscriptions (one of them costs two tokens), one event of a key that is
 * not active for bob, and one of a key that is not active.
 */
const GOOD: Records = {
  events: [event('e0', 'key-1'), event('e1', 'key-1', 20_000), event('e2', 'key-62'), event('e3', 'key-63')],
  arrivals: [
    ...(['ada', 'bob'] as const).flatMap(name => [at(10, name, 'e0'), at(20, name, 'e1')]),
    at(30, 'ada', 'e2', 'key-62'),
    at(110, 'blocked', 'e0'),
    at(120, 'blocked', 'e1'),
    at(130, 'blocked', 'e2', 'key-62'),
  ],
  hits: [{ name: 'kill -9', losesResults: true, fromMs: 5_000, toMs: 5_100 }],
  samples: [{ atMs: 5_000, claims: 1 }],
  liftedMs: 100,
  state: { counts: { ada: counts(3), bob: counts(2), blocked: counts(3) }, charged: 11, settled: 11 },
};

test('does not report anything if each event arrived once, in order, where its key is active', () => {
  expect(judge(GOOD)).toEqual({ problems: [], repeats: 0, bound: 1 });
});

test('does not count a delivery twice that has ended while another attempt is in progress', () => {
  expect(judge({ ...GOOD, ...withCounts('ada', { ended: 1, counted: 1 }) }).problems).toEqual([]);
});

const without = (gone: Arrival) =>
  GOOD.arrivals.filter(({ subscription, id }) => {
    return subscription !== gone.subscription || id !== gone.id;
  });
const withCounts = (name: Subscription, more: Partial<Counts>): Partial<Records> => ({
  state: { ...GOOD.state, counts: { ...GOOD.state.counts, [name]: { ...GOOD.state.counts[name], ...more } } },
});
const REPEATED = at(5_050, 'ada', 'e1');

test.each<[string, string, Partial<Records>]>([
  [
    'an event that did not arrive',
    '1 acknowledged and lost, as e1 of key-1 to bob',
    {
      arrivals: without(at(0, 'bob', 'e1')),
    },
  ],
  [
    'one that never was acknowledged',
    '1 events never acknowledged, as e0 of key-1',
    {
      events: GOOD.events.map(each => (each.id === 'e0' ? { ...each, acknowledgedMs: undefined } : each)),
    },
  ],
  [
    'two that changed places',
    '1 delivered out of order, as e0 of key-1 to ada after e1',
    {
      arrivals: [at(5, 'ada', 'e1'), ...without(at(0, 'ada', 'e1'))],
    },
  ],
  [
    'a key that is not activated',
    '1 delivered past a closed gate, as e2 of key-62 to bob',
    {
      arrivals: [...GOOD.arrivals, at(40, 'bob', 'e2', 'key-62')],
    },
  ],
  [
    'a blocked integration',
    '1 delivered past a closed gate, as e0 of key-1 to blocked',
    {
      arrivals: [at(99, 'blocked', 'e0'), ...without(at(0, 'blocked', 'e0'))],
    },
  ],
  [
    'an event that was not sent',
    '1 invented, as e9 of key-1 to ada',
    {
      arrivals: [...GOOD.arrivals, at(40, 'ada', 'e9')],
    },
  ],
  [
    'a repetition without a fault',
    '1 repeated without a fault, as e1 of key-1 to ada, 5 ms after',
    {
      arrivals: [...GOOD.arrivals, at(25, 'ada', 'e1')],
    },
  ],
  [
    'two repetitions of a lane at one fault',
    '1 repeated without a fault, as e1 of key-1 to ada, 1 ms after',
    {
      arrivals: [...GOOD.arrivals, REPEATED, { ...REPEATED, atMs: 5_051 }],
    },
  ],
  [
    'a repetition at a fault that loses no results',
    '1 repeated without a fault, as e1 of key-1 to ada, 5030 ms after',
    {
      arrivals: [...GOOD.arrivals, REPEATED],
      hits: GOOD.hits.map(hit => ({ ...hit, losesResults: false })),
    },
  ],
  [
    'more repetitions than were in flight',
    '2 repeated, and 1 were in flight at the faults',
    {
      arrivals: [...GOOD.arrivals, REPEATED, { ...REPEATED, subscription: 'bob' }],
    },
  ],
  ['a delivery in no state', 'ada: routed 3, and 2 in', withCounts('ada', { delivered: 2 })],
  ['a claim that is not counted', 'ada: 0 claims, and 1 counted', withCounts('ada', { counted: 1 })],
  ['an ended claim that is not counted', 'ada: 1 claims, and 0 counted', withCounts('ada', { ended: 1 })],
  [
    'one that is routed twice',
    'ada: routed 4 of 3 events: 4 delivered',
    withCounts('ada', { routed: 4, delivered: 4 }),
  ],
  ['one that is dead', 'bob: routed 2 of 2 events: 1 delivered, 1 dead', withCounts('bob', { delivered: 1, dead: 1 })],
  ['one that is charged twice', 'charged 12 tokens for 8 deliveries of 11', { state: { ...GOOD.state, charged: 12 } }],
  [
    'an account without the report',
    'the account was charged 10 tokens instead of 11',
    {
      state: { ...GOOD.state, settled: 10 },
    },
  ],
])('reports %s', (_, problem, change) => {
  const { problems } = judge({ ...GOOD, ...change });
  expect(
    problems.filter(each => each.includes(problem)),
    problems.join('\n'),
  ).toHaveLength(1);
});

test('one fault explains one repetition in each lane, and another one for each time that claims lapse in the meantime', () => {
  const arrivals = [...GOOD.arrivals, REPEATED, { ...REPEATED, subscription: 'bob' as const }];
  const samples = [{ atMs: 5_050, claims: 2 }];
  expect(judge({ ...GOOD, arrivals, samples })).toEqual({ problems: [], repeats: 2, bound: 2 });
  const long = [{ name: 'SIGSTOP', losesResults: true, fromMs: 5_000, toMs: 8_100 }];
  const more = [...arrivals, { ...REPEATED, atMs: 8_000 }];
  expect(judge({ ...GOOD, arrivals: more, samples, hits: long })).toEqual({ problems: [], repeats: 3, bound: 4 });
});
