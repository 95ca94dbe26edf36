import { expect, test } from 'vitest';
import { entityTagOf, matchesStrongly, matchesWeakly } from './entity-tag.ts';

const tag = entityTagOf('text');

test('texts have the same tag if they are equal', () => {
  expect(tag).toMatch(/^"[\w-]{22}"$/);
  expect(entityTagOf('text')).toBe(tag);
  expect(entityTagOf('other')).not.toBe(tag);
});

test.each<[field: string, strongly: boolean, weakly: boolean]>([
  [tag, true, true],
  [`"other", ${tag}`, true, true],
  [`"other",${tag} ,"another"`, true, true],
  ['*', true, true],
  [`W/${tag}`, false, true],
  ['"other"', false, false],
  [tag.slice(1, -1), false, false],
  ['', false, false],
])('the field %s', (field, strongly, weakly) => {
  expect([matchesStrongly(field, tag), matchesWeakly(field, tag)]).toEqual([strongly, weakly]);
});
