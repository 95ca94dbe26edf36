import { afterEach, expect, test, vi } from 'vitest';
import { carriesToken } from './query-token.ts';

afterEach(() => vi.restoreAllMocks());

test.each([
  '/x?access_token=a',
  '/x?access_token',
  '/x?a=1&access_token=a',
  '/x?Access-Token=a',
  '/x?access%5ftoken=a',
  '/x?%61%63%63ess_token=a',
  '/x?access%25255ftoken=a',
  '/x?access_token%3Da',
  '/x?access_token[]=a',
  '/x?my_access_token=a',
  '/x?\uff41ccess_token=a',
  '/x?a?access_token=a',
  '/x?#access_token=a',
  '?access_token=',
  '/x?acc.ess;access.token=a',
  `/x?${'&'.repeat(30_000)}access_token=a`,
])('%s', target => {
  expect(carriesToken(target)).toBe(true);
});

test.each([
  '/x',
  '/access_token',
  '/access_token?a=1',
  '/x?a=access_token',
  '/x?token=a',
  '/x?q=1%26access_token',
  '/x?%',
  '/x?%ff=%c3',
])('%s does not', target => {
  expect(carriesToken(target)).toBe(false);
});

test('more than 64 parameters are too many to look at', () => {
  const many = (count: number) => `/x?${Array.from({ length: count }, (_, n) => `%61${n}=1`).join('&')}`;
  expect(carriesToken(many(64))).toBe(false);
  expect(carriesToken(many(65))).toBe('too many');
});

test('empty parameters and plain ones cost no decoding', () => {
  const normalize = vi.spyOn(String.prototype, 'normalize');
  expect(carriesToken(`/x?${'&;'.repeat(15_000)}`)).toBe(false);
  expect(carriesToken('/x?limit=50&cursor=abc')).toBe(false);
  expect(normalize).not.toHaveBeenCalled();
});
