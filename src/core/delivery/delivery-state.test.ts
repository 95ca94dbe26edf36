import { expect, test } from 'vitest';
import { parseDeliveryState } from './delivery-state.ts';

test('a subscription without data in Redis has no problem', () => {
  const state = { attempt: undefined, dead: 0, youngestDeadMs: undefined, firstDead: undefined, backlog: '0' };
  expect(parseDeliveryState({})).toEqual(state);
  expect(parseDeliveryState({ delivery: 'nonsense', dead: 'x', 'n:dead': 'y' })).toEqual(state);
  expect(parseDeliveryState({ delivery: 'NoSuchWord 5 0 0' })).toEqual(state);
});

test.each([
  ['0', 0, '0'],
  ['1', 9, '1+'],
  ['2', 10, '10+'],
  ['3', 999, '100+'],
  ['4', 5_000, '1000+'],
])('%s digits with %d open events are a backlog of %s', (digits, routed, backlog) => {
  expect(parseDeliveryState({ delivery: `- 0 0 ${digits}`, 'n:routed': `${routed}` }).backlog).toBe(backlog);
});

test('no more events wait than are open', () => {
  const noted = { delivery: 'HttpError 5 0 3', 'n:routed': '120', 'n:tested': '1' };
  expect(parseDeliveryState({ ...noted, 'n:delivered': '1' }).backlog).toBe('100+');
  expect(parseDeliveryState({ ...noted, 'n:expired': '112' }).backlog).toBe('1+');
  expect(parseDeliveryState({ ...noted, 'n:expired': '100', 'n:skipped': '21' }).backlog).toBe('0');
});

test('a test event does not count as a dead letter', () => {
  expect(parseDeliveryState({ 'n:dead': '3', testsDead: '2' }).dead).toBe(1);
  expect(parseDeliveryState({ 'n:dead': '2', testsDead: '2' }).dead).toBe(0);
});
