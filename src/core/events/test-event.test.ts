import { expect, test } from 'vitest';
import { isRef, refMs, refOfStreamId } from '../ids/refs.ts';
import { isTestRef, testEvent } from './test-event.ts';

const NOW_MS = 1_800_000_000_000;
const testRef = (number: number) => refOfStreamId(`${NOW_MS}-${2 ** 25 - 32 + number}`);

test('the refs of test events are the last 32 of a millisecond', () => {
  const refs = Array.from({ length: 32 }, (_, n) => testRef(n));
  expect(new Set(refs).size).toBe(32);
  for (const ref of refs) {
    expect(isRef(ref) && isTestRef(ref)).toBe(true);
    expect(refMs(ref)).toBe(NOW_MS);
  }
  for (const sequence of [0, 1, 31, 32, 1_048_575, 2 ** 25 - 33]) {
    expect(isTestRef(refOfStreamId(`${NOW_MS}-${sequence}`))).toBe(false);
  }
});

test('the event is derived from its ref', () => {
  const ref = testRef(3);
  const { meta, body } = testEvent(ref, 'sub_0123456789abcdefghjk');
  expect(testEvent(ref, 'sub_0123456789abcdefghjk')).toEqual({ meta, body });
  expect(meta).toMatchObject({ type: 'sluice.test', groupKey: '', time: NOW_MS, contentType: 'application/json' });
  expect(JSON.parse(body.toString())).toMatchObject({ type: 'sluice.test', timestamp: '2027-01-15T08:00:00.000Z' });
});
