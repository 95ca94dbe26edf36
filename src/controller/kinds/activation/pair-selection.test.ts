import { expect, test } from 'vitest';
import { pairSelection } from './pair-selection.ts';

test('a group key can contain the characters of a field selector', () => {
  expect(pairSelection({ namespace: 'acme', integration: 'globex', groupKey: 'a,b=c\\d' })).toEqual({
    namespace: 'acme',
    fieldSelector: 'spec.integration=globex,spec.groupKey=a\\,b\\=c\\\\d',
  });
});
