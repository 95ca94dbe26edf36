import { expect, test } from 'vitest';
import { refOfStreamId } from '../ids/refs.ts';
import { parseEventMeta } from './event-meta.ts';

const REF = refOfStreamId('1800000000000-3');

test('contains the stored values and the values of the ref', () => {
  const stored = { i: 'e1', t: 'order.made', c: 'text/plain', p: '00-a-b-01', f: { 'x-a': '1' }, s: '/events/t/q' };
  expect(parseEventMeta(JSON.stringify(stored), 'k', REF)).toEqual({
    id: 'e1',
    type: 'order.made',
    groupKey: 'k',
    time: 1_800_000_000_000,
    contentType: 'text/plain',
    source: '/events/t/q',
    traceparent: '00-a-b-01',
    forward: { 'x-a': '1' },
  });
});

test('does not contain values that were not provided', () => {
  expect(parseEventMeta('{"i":"e1","s":"/s"}', 'k', REF)).toEqual({
    id: 'e1',
    groupKey: 'k',
    time: 1_800_000_000_000,
    source: '/s',
  });
});

test('contains the attributes of a CloudEvent in binary mode', () => {
  const attributes = { specversion: '1.0', id: 'c1', source: '/shop', type: 'x', subject: 'caf%C3%A9' };
  const meta = parseEventMeta(JSON.stringify({ i: 'e1', s: '/events/t/q', a: attributes }), 'k', REF);
  expect(meta).toMatchObject({ id: 'e1', source: '/events/t/q', attributes });
});
