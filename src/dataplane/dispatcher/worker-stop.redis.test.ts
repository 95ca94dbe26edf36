import { expect, test } from 'vitest';
import type { AttemptResult } from './endpoint-client.ts';
import { answered, connect, start } from './testing/worker-harness.ts';

test('stopping waits for what is in flight, completes it, and claims nothing new', async () => {
  const { t, publish, worker, control, sent, counters, aborter, x } = await start(await connect());
  const held = Promise.withResolvers<AttemptResult>();
  control.attempt = () => held.promise;
  await publish('a', 'a');
  const done = worker().run();
  await expect.poll(() => sent).toEqual(['a0']);
  aborter.abort();
  held.resolve(answered(204));
  // Due at once for the others: a hint that were removed here would be missed for ever.
  expect(await done).toBe(t.nowMs());
  expect(await counters()).toEqual({ 'n:routed': '2', 'n:delivered': '1' });
  expect(await t.inboxes.claim(t.inboxOf('x'), t.nowMs(), 9, 'next', 1)).toMatchObject({ claims: [{ lane: 'a' }] });
  expect(x.claims).toContain('cl');
});

/** A worker that is stopped while `a0` is in flight. It is delivered then, and each exchange from there on runs `fault` first. */
async function startStopping(fault: (exchanges: number) => void) {
  const it = await start(await connect());
  const held = Promise.withResolvers<AttemptResult>();
  it.control.attempt = () => held.promise;
  await it.publish('a');
  const done = it.worker().run();
  await expect.poll(() => it.sent).toEqual(['a0']);
  const { exchange } = it.deps.inboxes;
  let exchanges = 0;
  it.deps.inboxes.exchange = async (...args) => {
    fault(++exchanges);
    return exchange(...args);
  };
  it.aborter.abort();
  held.resolve(answered(204));
  return { ...it, done, exchanges: () => exchanges };
}

test('stopping while Redis does not answer keeps what was delivered until it does: nothing is sent again', async () => {
  const { deps, done, worker, sent, counters, t } = await startStopping(exchanges => {
    if (exchanges <= 2) throw new Error('no answer');
  });
  await done;
  expect(await counters()).toEqual({ 'n:routed': '1', 'n:delivered': '1' });
  t.clock.ms += 60_000;
  deps.signal = new AbortController().signal;
  expect(await worker().run()).toBeNull();
  expect(sent).toEqual(['a0']);
});

test('stopping takes 10 s at most where Redis stays away', async () => {
  let monotonicMs = 0;
  const { deps, done, exchanges, t } = await startStopping(() => {
    monotonicMs += 4_000;
    throw new Error('no answer');
  });
  deps.monotonicMs = () => monotonicMs;
  expect(await done).toBe(t.nowMs());
  // At 4, 8, 12 and 16 s: the first one starts the 10 s.
  expect(exchanges()).toBe(4);
});
