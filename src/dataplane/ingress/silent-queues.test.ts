import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { harness, item } from './testing/batches-harness.ts';

describe('a stream that does not respond', () => {
  test('refuses all of its events along with the first one', async () => {
    const clock = createManualClock();
    const { batches, calls, settled, failures, submit } = harness({ ingestTimeoutMs: 5_000 }, clock);
    for (let index = 0; index < 640; index++) submit(item(`n${index}`));
    await turn();
    await clock.advance(4_999);
    submit(item('last'));
    expect(settled).toEqual([]);
    await clock.advance(1);
    expect([settled.length, new Set(settled.map(each => each.split(' ')[1]))]).toEqual([641, new Set(['UNAVAILABLE'])]);
    expect([calls.length, failures, clock.pendingTimers()]).toEqual([1, ['ingest'], 0]);
    await batches.idle();
  });

  test('is checked with one event at a time, and refuses others immediately', async () => {
    const clock = createManualClock();
    const { batches, calls, settled, submit } = harness({ ingestTimeoutMs: 5_000 }, clock);
    const add = (id: string) => [batches.isSilent('t', 'q'), submit(item(id))];
    expect(add('a')).toEqual([false, true]);
    await clock.advance(5_000);
    await clock.advance(5_000);
    for (const probe of ['b', 'c']) {
      expect([add(probe), add('x'), add('y')]).toEqual([
        [false, true],
        [true, false],
        [true, false],
      ]);
      await turn();
      expect(add('z')).toEqual([true, false]);
      await clock.advance(5_000);
    }
    expect(submit(item('other'), 'others')).toBe(true);
    expect(add('d')).toEqual([false, true]);
    await turn();
    // The response to an earlier call is ignored.
    calls[0]?.finish();
    await turn();
    expect(add('e')).toEqual([true, false]);
    calls.at(-1)?.finish();
    await turn();
    expect([add('f'), add('g')]).toEqual([
      [false, true],
      [false, true],
    ]);
    expect(settled).toEqual(['a UNAVAILABLE', 'b UNAVAILABLE', 'c UNAVAILABLE', 'd OK']);
  });

  test('is detected by a call that fails late, and not by a call that fails early', async () => {
    const clock = createManualClock();
    const { batches, calls, submit } = harness({ ingestTimeoutMs: 5_000 }, clock);
    submit(item('a'));
    await turn();
    await clock.advance(4_900);
    calls[0]?.finish(new Error('Command timed out'));
    await turn();
    submit(item('b'));
    expect(batches.isSilent('t', 'q')).toBe(true);
    await turn();
    calls[1]?.finish(new Error('connection refused'));
    await turn();
    submit(item('c'));
    expect(batches.isSilent('t', 'q')).toBe(false);
  });
});

test('refuses an event in time even if each call before it takes almost all of this time', async () => {
  const clock = createManualClock();
  const { batches, calls, settled, submit } = harness({ ingestTimeoutMs: 5_000, batchItems: 1 }, clock);
  for (const id of ['a', 'b', 'c']) submit(item(id));
  await turn();
  await clock.advance(4_000);
  calls[0]?.finish();
  await turn();
  await clock.advance(1_000);
  expect(settled).toEqual(['a OK', 'b UNAVAILABLE', 'c UNAVAILABLE']);
  submit(item('d'));
  // The call continues. Its event does not receive another response, and the stream is still used.
  calls[1]?.finish();
  await turn();
  calls[2]?.finish();
  await batches.idle();
  expect(settled.slice(3)).toEqual(['d OK']);
  expect([calls.map(call => call.ids), clock.pendingTimers()]).toEqual([[['a'], ['b'], ['d']], 0]);
});

test('does not store late events that the store leaves for the next call', async () => {
  const clock = createManualClock();
  const { batches, calls, settled, submit } = harness({ ingestTimeoutMs: 5_000, batchItems: 2 }, clock);
  for (const id of ['a', 'b', 'c', 'd']) submit(item(id));
  await turn();
  await clock.advance(3_000);
  calls[0]?.finish();
  await turn();
  await clock.advance(2_000);
  calls[1]?.finishFirst(1);
  await batches.idle();
  expect(settled).toEqual(['a OK', 'b OK', 'c UNAVAILABLE', 'd UNAVAILABLE']);
  expect(calls).toHaveLength(2);
});
