import { expect, test } from 'vitest';
import { showHeaders } from './sent-headers.ts';

test('signatures and the values of the headers of the partner are hidden, in any case', () => {
  const lines = [
    'webhook-id: a',
    'webhook-signature: v1,first v1,second',
    'X-Own: a secret of the partner',
    'x-other: another: secret',
    'accept: */*',
    '',
  ];
  expect(showHeaders(lines.join('\r\n'), ['x-own', 'X-Other'])).toEqual([
    ['webhook-id', 'a'],
    ['webhook-signature', 'v1,… v1,…'],
    ['X-Own', '…'],
    ['x-other', '…'],
    ['accept', '*/*'],
  ]);
});
