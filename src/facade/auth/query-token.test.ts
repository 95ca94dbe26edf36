import { expect, test } from 'vitest';
import { carriesToken } from './query-token.ts';

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
