import { expect, test } from 'vitest';
import { Refusal } from '../../../http/refusal.ts';
import { validate } from '../../contract/validate.ts';
import { INGRESS_KEY_ROUTES } from './ingress-keys.ts';

const body = INGRESS_KEY_ROUTES.find(({ operation }) => operation === 'createIngressKey')?.body;

test.each([
  ['2027-01-01', 'must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z'],
  ['9999-12-31T23:59:59-23:59', 'must be before the year 10000 in UTC'],
])('the expiry time %s is refused at its own field', (expiresAt, detail) => {
  if (body === undefined) throw new Error('createIngressKey does not have a body');
  try {
    validate('body', body, { expiresAt });
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    return expect((error as Refusal).facts.errors).toEqual([{ pointer: '/expiresAt', detail }]);
  }
  throw new Error('the time was accepted');
});

test('an expiry time with any offset is accepted until the year 9999', () => {
  const expiresAt = '9999-12-31T23:59:59+23:59';
  if (body === undefined) throw new Error('createIngressKey does not have a body');
  expect(validate('body', body, { expiresAt })).toEqual({ expiresAt });
});
