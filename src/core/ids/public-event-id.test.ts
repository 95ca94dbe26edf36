import { expect, test } from 'vitest';
import { publicId } from './ids.ts';
import { parsePublicEventId, publicEventId } from './public-event-id.ts';
import { refOfStreamId } from './refs.ts';

const subscription = publicId('Subscription', 'ada', 'orders');

test('an id contains its event and its subscription, and ids sort by time', () => {
  const [early, late] = ['1800000000000-9', '1800000000000-10'].map(refOfStreamId) as [string, string];
  const id = publicEventId(early, subscription);
  expect(id).toMatch(/^evt_[0-9a-z]{35}$/);
  expect(parsePublicEventId(id)).toEqual({ ref: early, subscription });
  expect(id < publicEventId(late, subscription)).toBe(true);
});

test.each([
  '',
  'evt_',
  `evt_${'0'.repeat(34)}`,
  `evt_${'0'.repeat(36)}`,
  `evt_${'u'.repeat(35)}`,
  `EVT_${'0'.repeat(35)}`,
])('%j is not a valid id', id => {
  expect(parsePublicEventId(id)).toBeUndefined();
});
