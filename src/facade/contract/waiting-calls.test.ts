import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { Refusal } from '../../http/refusal.ts';
import { createWaiter, createWaitingCalls, MOST_WAITING, MOST_WAITING_OF_ACCOUNT } from './waiting-calls.ts';

const refusalOf = async (call: Promise<unknown>) => {
  const refusal = await call.catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(Refusal);
  const { code, facts } = refusal as Refusal;
  return { code, ...facts };
};

const ADA = { caller: 'ada', account: 'shop' };

function fill(calls: ReturnType<typeof createWaitingCalls>, count: number) {
  const events = Promise.withResolvers<string>();
  const waiting = Array.from({ length: count }, () => calls.run(ADA, () => events.promise));
  return { events, waiting };
}

test('a call beyond the limit is refused without waiting, and the response contains the limit and its usage', async () => {
  const calls = createWaitingCalls();
  const { events, waiting } = fill(calls, MOST_WAITING);
  const ran: string[] = [];
  const refused = await refusalOf(calls.run(ADA, async () => ran.push('ada')));
  expect(refused).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '1' } });
  expect(refused.detail).toContain('You have 16 calls that wait for events, which is the limit.');
  expect(ran).toEqual([]);
  expect(await calls.run({ ...ADA, caller: 'eve' }, async () => 'others are not affected')).toBe(
    'others are not affected',
  );
  events.resolve('event');
  expect(await Promise.all(waiting)).toEqual(Array.from({ length: MOST_WAITING }, () => 'event'));
});

test('the callers of an account have a common limit, and other accounts are not affected', async () => {
  const calls = createWaitingCalls();
  const events = Promise.withResolvers<string>();
  const wait = (caller: number, account: string | undefined = 'shop') =>
    calls.run({ caller: `caller ${caller % 64}`, account }, () => events.promise);
  const waiting = Array.from({ length: MOST_WAITING_OF_ACCOUNT }, (_, n) => wait(n));
  const refused = await refusalOf(wait(1));
  expect(refused).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '1' } });
  expect(refused.detail).toContain('Your account has 512 calls that wait for events, which is the limit.');
  // A refused call does not keep the place of its caller.
  const others = Array.from({ length: MOST_WAITING - 8 }, () => wait(1, 'other'));
  expect((await refusalOf(wait(1, 'other'))).detail).toContain('You have 16 calls');
  events.resolve('event');
  expect(new Set(await Promise.all([...waiting, ...others]))).toEqual(new Set(['event']));
  expect(await wait(1)).toBe('event');
});

test.each(['resolve', 'reject'] as const)('calls that %s release their places', async settle => {
  const calls = createWaitingCalls(2);
  for (let rounds = 0; rounds < 3; rounds++) {
    const { events, waiting } = fill(calls, 2);
    expect((await refusalOf(calls.run(ADA, async () => 'ran'))).code).toBe('rate_limited');
    events[settle]('end');
    await Promise.allSettled(waiting);
  }
  expect(await calls.run(ADA, async () => 'ran')).toBe('ran');
});

test('a wait that throws before it waits releases its place', async () => {
  const calls = createWaitingCalls(1);
  const failing = () => {
    throw new Error('failed');
  };
  await expect(calls.run(ADA, failing)).rejects.toThrow('failed');
  expect(await calls.run(ADA, async () => 'ran')).toBe('ran');
});

test('each additional read of a waiting call costs a point, and is omitted without a point', async () => {
  const clock = createManualClock();
  const reads: number[] = [];
  let points = 3;
  const spend = (cost: number) => {
    if (points < cost) return false;
    points -= cost;
    return true;
  };
  const { signal } = new AbortController();
  const waiting = createWaitingCalls();
  let waits = 0;
  const waitFor = createWaiter({
    clock,
    waiting,
    ...ADA,
    signal,
    closing: signal,
    spend,
    onWait: () => void waits++,
    checkAccess: async () => undefined,
  });
  const ask = async () => {
    reads.push(clock.nowMs());
    return reads.length;
  };
  const answer = waitFor(10, ask, read => read === 5);
  await clock.advance(4_000);
  expect(reads).toEqual([0, 500, 1_000, 1_500]);
  points = 1;
  await clock.advance(1_000);
  expect(await answer).toBe(5);
  expect(reads.at(-1)).toBe(4_500);
  expect(waits).toBeGreaterThan(0);
  waits = 0;
  await waitFor(0, ask, () => false);
  expect([reads.length, points, waits]).toEqual([6, 0, 0]);
});

test('a call that does not wait is not limited, and a stopping server ends waits', async () => {
  const clock = createManualClock();
  const calls = createWaitingCalls(1);
  const closing = new AbortController();
  const waitFor = createWaiter({
    clock,
    waiting: calls,
    ...ADA,
    signal: new AbortController().signal,
    closing: closing.signal,
    spend: () => true,
    onWait: () => {},
    checkAccess: async () => undefined,
  });
  const look = (waitSeconds: number) =>
    waitFor(
      waitSeconds,
      async () => 'nothing',
      () => false,
    );
  const waiting = look(30);
  expect((await refusalOf(look(1))).code).toBe('rate_limited');
  expect(await look(0)).toBe('nothing');
  closing.abort();
  expect(await waiting).toBe('nothing');
  expect(clock.nowMs()).toBe(0);
});

test('a waiting call whose caller has lost access is refused before it reads again', async () => {
  const clock = createManualClock();
  const { signal } = new AbortController();
  let hasAccess = true;
  let reads = 0;
  const waitFor = createWaiter({
    clock,
    waiting: createWaitingCalls(),
    ...ADA,
    signal,
    closing: signal,
    spend: () => true,
    onWait: () => {},
    async checkAccess() {
      if (!hasAccess) throw new Refusal('forbidden');
    },
  });
  const refused = refusalOf(
    waitFor(
      30,
      async () => ++reads,
      () => false,
    ),
  );
  await clock.advance(1_000);
  expect(reads).toBe(3);
  hasAccess = false;
  await clock.advance(500);
  expect((await refused).code).toBe('forbidden');
  expect(reads).toBe(3);
});
