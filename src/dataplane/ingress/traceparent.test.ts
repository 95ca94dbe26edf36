import { expect, test } from 'vitest';
import { readTraceparent } from './traceparent.ts';

const VALID = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

test('a valid value is kept', () => expect(readTraceparent(VALID)).toBe(VALID));

test.each([
  undefined,
  '',
  VALID.toUpperCase(),
  VALID.replace(/^00/, 'ff'),
  VALID.replace('4bf92f3577b34da6a3ce929d0e0e4736', '0'.repeat(32)),
  VALID.replace('00f067aa0ba902b7', '0'.repeat(16)),
  `${VALID}, ${VALID}`,
])('%j is ignored', header => expect(readTraceparent(header)).toBeUndefined());
