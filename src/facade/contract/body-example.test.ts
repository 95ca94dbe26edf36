import { expect, test } from 'vitest';
import { exampleOf } from './body-example.ts';

const nothing = () => undefined;

test.each([
  ['its own example', { type: 'string', examples: ['a', 'b'] }, 'a'],
  ['the first of a choice', { enum: ['x', 'y'] }, 'x'],
  ['a constant', { const: 7 }, 7],
  ['a switch', { type: 'boolean' }, true],
  ['a text without constraints', { type: 'string' }, undefined],
  ['a list', { type: 'array', items: { examples: [1] } }, [1]],
  ['one of several', { anyOf: [{ examples: ['first'] }, { examples: ['second'] }] }, 'first'],
])('%s', (_what, schema, expected) => {
  expect(exampleOf(schema, nothing)).toEqual(expected);
});

test('an object has its required fields, and of the others those with an example', () => {
  const schema = {
    properties: { a: { type: 'boolean' }, b: { type: 'boolean' }, c: { examples: ['c'] }, d: { type: 'string' } },
    required: ['a'],
  };
  expect(exampleOf(schema, nothing)).toEqual({ a: true, c: 'c' });
});

test('an object without an example of a required field has none itself', () => {
  expect(exampleOf({ properties: { a: { type: 'string' } }, required: ['a'] }, nothing)).toBeUndefined();
});

test('follows a reference, and returns no example for a missing one', () => {
  const schema = { properties: { a: { $ref: '#/x' } }, required: ['a'] };
  expect(exampleOf(schema, () => ({ examples: [3] }))).toEqual({ a: 3 });
  expect(exampleOf(schema, nothing)).toBeUndefined();
});
