import { expect, test } from 'vitest';
import { Refusal } from '../../../http/refusal.ts';
import { PairBody, PairQuery, resolvePair } from './activation-requests.ts';

const pair = {
  producerTenantPublicId: 'ten_0123456789abcdefghjk',
  groupKey: 'store 17/ä',
  integrationPublicId: 'int_0123456789abcdefghjk',
};

function refusalOf(run: () => unknown): Refusal {
  try {
    run();
  } catch (error) {
    if (error instanceof Refusal) return error;
  }
  throw new Error('was not refused');
}

test('the fields can be in the body, in the query, or in both with the same values', () => {
  expect(resolvePair(PairBody.parse(pair), {})).toEqual(pair);
  expect(resolvePair(undefined, PairQuery.parse(pair))).toEqual(pair);
  expect(resolvePair(pair, pair)).toEqual(pair);
  expect(resolvePair(pair, { groupKey: pair.groupKey })).toEqual(pair);
});

test('different values result in a 400 with their names', () => {
  const { code, facts } = refusalOf(() => resolvePair(pair, { ...pair, groupKey: 'store 17/Ä' }));
  expect(code).toBe('ambiguous_request');
  expect(facts.errors).toEqual([{ parameter: 'groupKey', detail: 'is different from the value in the body' }]);
});

test('missing values result in a 422 with their names', () => {
  const { code, facts } = refusalOf(() => resolvePair(undefined, { groupKey: 'a' }));
  expect(code).toBe('invalid_request');
  expect(facts.errors?.map(({ parameter }) => parameter)).toEqual(['producerTenantPublicId', 'integrationPublicId']);
});
