import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Exchange, ExchangeAnswer } from '../../part/claims/exchange.ts';
import type { Claim } from '../../part/claims/message.ts';
import { createClaimBook } from './claims/claim-book.ts';
import type { HeldClaim } from './claims/held-claim.ts';
import { createExchangeLoop } from './exchange-loop.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import { createPushCount } from './push-count.ts';
import { createRoom, type RoomShare } from './room.ts';

const ANSWER: Extract<ExchangeAnswer, { answer: 'OK' | 'CLOSED' | 'HELD' }> = {
  answer: 'OK',
  nowMs: 0,
  pushed: 0,
  bytes: 0,
  answers: [],
  dueMs: undefined,
  more: false,
  version: '0',
  disabled: [],
  lapsed: [],
  hold: undefined,
  news: [],
  events: [],
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Starts a loop whose exchanges are answered by the test. */
function start(room: RoomShare = createRoom(100).join('ten_a'), answer = ANSWER) {
  const book = createClaimBook();
  const answers: (() => void)[] = [];
  const calls: { readonly ended: number; readonly most: number; readonly limit: number }[] = [];
  const exchange: Exchange = (_part, { limit }, completions, most) =>
    new Promise(resolve => {
      calls.push({ ended: completions.length, most, limit });
      answers.push(() => resolve(answer));
    });
  const monotonicMs = () => Date.now();
  const loop = createExchangeLoop({
    deps: { name: 'd1', monotonicMs, exchange } as unknown as PartWorkerDeps,
    part: { tenant: 'ten_a', queue: 'orders', gen: 'g1', number: 0 },
    book,
    room,
    count: createPushCount(),
    sending: () => 0,
    fence: async () => {},
    isListening: () => true,
    onAnswer: () => {},
    onMissing: () => {},
    onFailure: () => {},
  });
  const claim: Claim = {
    slot: 's',
    lane: 'lane',
    ref: '1',
    behind: false,
    attempts: 0,
    lapses: 0,
    replay: undefined,
  };
  const held = { claim, atMs: 0, behind: false, next: undefined } as unknown as HeldClaim;
  return { loop, book, calls, answers, held };
}

test('an exchange that records a result is also the heartbeat that was due in the meantime', async () => {
  const { loop, book, answers, held } = start();
  loop.want();
  await vi.advanceTimersByTimeAsync(1);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(990);
  book.take(held);
  loop.beat();
  book.end(held, { lane: 'lane', ref: '1', outcome: 'delivered', reason: '200', latencyMs: 1 });
  loop.completed();
  await vi.advanceTimersByTimeAsync(7);
  expect(answers).toHaveLength(2);
  // The heartbeat is due before the response arrives.
  await vi.advanceTimersByTimeAsync(10);
  answers[1]?.();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(answers).toHaveLength(2);
  expect(book.count()).toBe(0);
});

test('claims that are held cause a heartbeat a second after the last exchange was sent', async () => {
  const { loop, book, answers, held } = start();
  loop.want();
  await vi.advanceTimersByTimeAsync(1);
  book.take(held);
  loop.beat();
  await vi.advanceTimersByTimeAsync(300);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(690);
  expect(answers).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(20);
  expect(answers).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1_500);
  answers[1]?.();
  await vi.advanceTimersByTimeAsync(20);
  expect(answers).toHaveLength(3);
});

test('an exchange can claim the next event of every lane whose attempt it ends', async () => {
  const { loop, book, calls, answers } = start();
  for (let i = 0; i < 300; i++) book.giveBack(`lane ${i}`, '1');
  loop.completed();
  for (let i = 0; i < 3; i++) {
    await vi.advanceTimersByTimeAsync(1);
    answers[i]?.();
  }
  await vi.advanceTimersByTimeAsync(1);
  expect(calls.reduce((sum, { ended }) => sum + ended, 0)).toBe(300);
  for (const { ended, most } of calls) expect(ended).toBeLessThanOrEqual(most);
});

test('an exchange that had no room for another claim is repeated if others have released some in the meantime', async () => {
  const room = createRoom(7, 2);
  const [share, other] = [room.join('ten_a'), room.join('ten_a')];
  const { loop, book, calls, answers, held } = start(share);
  const claims = ['one', 'two'].map((lane): HeldClaim => ({ ...held, claim: { ...held.claim, lane } }));
  for (const each of claims) book.take(each);
  share.take(2);
  other.limit(0, () => {});
  other.reserve(2);
  book.end(claims[0] as HeldClaim, { lane: 'one', ref: '1', outcome: 'delivered', reason: '200', latencyMs: 1 });
  loop.completed();
  await vi.advanceTimersByTimeAsync(7);
  expect(calls).toMatchObject([{ ended: 1, limit: 1 }]);
  other.take(1);
  other.give(0);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(7);
  expect(calls).toMatchObject([{}, { ended: 0, limit: 2 }]);
  // There was room this time, and nothing to claim.
  answers[1]?.();
  await vi.advanceTimersByTimeAsync(7);
  expect(calls).toHaveLength(2);
});

test('it is also repeated if its room was only used by pushes that were not read yet', async () => {
  const room = createRoom(70);
  const [share, other] = [room.join('ten_a'), room.join('ten_a')];
  const { loop, book, calls, answers, held } = start(share, { ...ANSWER, pushed: 1 });
  const claims = Array.from({ length: 31 }, (_, i): HeldClaim => ({ ...held, claim: { ...held.claim, lane: `${i}` } }));
  for (const each of claims) book.take(each);
  share.take(31);
  other.reserve(4);
  for (const each of claims.slice(0, 5)) {
    book.end(each, { lane: each.claim.lane, ref: '1', outcome: 'delivered', reason: '200', latencyMs: 1 });
  }
  loop.completed();
  await vi.advanceTimersByTimeAsync(7);
  expect(calls).toMatchObject([{ ended: 5, limit: 27 }]);
  other.give(0);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(7);
  expect(calls).toMatchObject([{}, { ended: 0, limit: 31 }]);
});
