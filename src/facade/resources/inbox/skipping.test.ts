import { expect, test } from 'vitest';
import { Refusal } from '../../../http/refusal.ts';
import { validate } from '../../contract/validate.ts';
import { SKIP_ROUTES } from './skipping.ts';

test('only group keys that an activation can have are accepted', () => {
  const body = SKIP_ROUTES.find(({ operation }) => operation === 'skipEvents')?.body;
  if (body === undefined) throw new Error('skipEvents does not have a body');
  const upTo = `evt_${'0'.repeat(35)}`;
  for (const groupKey of [' x ', 'a\0', 'é'.repeat(129)]) {
    expect(() => validate('body', body, { upTo, groupKey }), groupKey).toThrow(Refusal);
  }
  for (const groupKey of ['x', 'é'.repeat(128)]) {
    expect(validate('body', body, { upTo, groupKey })).toEqual({ upTo, groupKey });
  }
});
