import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Refusal } from '../../http/refusal.ts';
import { instant, refuseReversed } from '../resources/inbox/events.ts';
import { PageQuery } from './page.ts';
import { validate, validatePath } from './validate.ts';

const Schema = z.strictObject({
  name: z.string().min(2).max(5),
  since: instant('since'),
  dryRun: z.boolean().optional(),
  count: z.int().max(20).optional(),
  states: z
    .array(z.enum(['dead', 'skipped']))
    .min(1)
    .optional(),
  target: z.strictObject({ kind: z.enum(['Package', 'CatalogStream']) }).optional(),
  anything: z.unknown().optional(),
});
const GOOD = { name: 'abc', since: '2026-01-31T12:00:00Z' };

function faultsOf(action: () => unknown): readonly object[] {
  try {
    action();
  } catch (error) {
    if (error instanceof Refusal) return error.facts.errors ?? [{ code: error.code, detail: error.facts.detail }];
  }
  throw new Error('the value was accepted');
}

describe('each fault says what to change', () => {
  test.each([
    [{ ...GOOD, name: undefined }, '/name', 'is required'],
    [{ ...GOOD, name: 1 }, '/name', 'must be a string, in double quotes'],
    [{ ...GOOD, name: null }, '/name', 'must be a string, in double quotes'],
    [{ ...GOOD, name: 'a' }, '/name', 'must have at least 2 characters'],
    [{ ...GOOD, name: 'abcdef' }, '/name', 'must have at most 5 characters'],
    [{ name: 'abc' }, '/since', 'is required; it must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z'],
    [{ ...GOOD, since: '2026-11-22' }, '/since', 'must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z'],
    [
      { ...GOOD, since: '2026-11-22T08:00:00 01:00' },
      '/since',
      'must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z. In a query, write + as %2B',
    ],
    [{ ...GOOD, dryRun: 'true' }, '/dryRun', 'must be true or false, without quotes'],
    [{ ...GOOD, count: '7' }, '/count', 'must be a number, without quotes'],
    [{ ...GOOD, count: 7.5 }, '/count', 'must be a whole number, without quotes'],
    [{ ...GOOD, count: 21 }, '/count', 'must be at most 20'],
    [{ ...GOOD, states: 'dead' }, '/states', 'must be a list: [ … ]'],
    [{ ...GOOD, states: [] }, '/states', 'must have at least 1 item'],
    [{ ...GOOD, states: ['gone'] }, '/states/0', 'must be one of dead, skipped'],
    [{ ...GOOD, target: 'x' }, '/target', 'must be an object: { … }'],
    [{ ...GOOD, target: {} }, '/target/kind', 'is required'],
    [{ ...GOOD, target: { kind: 'Package', nam: 1 } }, '/target/nam', 'is not a field of this call'],
    [{ ...GOOD, dry_run: true }, '/dry_run', 'is not a field of this call; did you mean dryRun?'],
    [
      { ...GOOD, frobnicate: true },
      '/frobnicate',
      'is not a field of this call; known: name, since, dryRun, count, states, target, anything',
    ],
    [
      { ...GOOD, 'a/b~c': true },
      '/a~1b~0c',
      'is not a field of this call; known: name, since, dryRun, count, states, target, anything',
    ],
    [[], '', 'must be an object: { … }'],
  ])('%j', (value, pointer, detail) => {
    expect(faultsOf(() => validate('body', Schema, value))).toEqual([{ pointer, detail }]);
  });

  test('a value of another type has a single error, even if its length is wrong as well', () => {
    const Sized = z.strictObject({ email: z.string().min(3).max(9), items: z.array(z.string()).max(2) });
    for (const email of [[], ['a'], Array(10).fill('a')]) {
      expect(faultsOf(() => validate('body', Sized, { email, items: 'abc' }))).toEqual([
        { pointer: '/email', detail: 'must be a string, in double quotes' },
        { pointer: '/items', detail: 'must be a list: [ … ]' },
      ]);
    }
  });

  test('a parameter that is given twice', () => {
    expect(faultsOf(() => validate('query', PageQuery, { limit: ['1', '2'], cursor: ['a', 'b'] }))).toEqual([
      { parameter: 'limit', detail: 'may be given once' },
      { parameter: 'cursor', detail: 'may be given once' },
    ]);
  });

  test.each(['since', 'until'])('a range with an invalid %s is not called reversed', name => {
    const Range = refuseReversed(z.strictObject({ since: instant('since'), until: instant('until') }));
    const range = { since: '2026-01-31T12:00:00Z', until: '2026-02-01T12:00:00Z', [name]: '2026-01-31' };
    expect(faultsOf(() => validate('body', Range, range))).toEqual([
      { pointer: `/${name}`, detail: 'must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z' },
    ]);
  });

  test('contains the parameter of a query', () => {
    const Query = z.strictObject({ limit: z.string().optional() });
    expect(faultsOf(() => validate('query', Query, { limits: '1' }))).toEqual([
      { parameter: 'limits', detail: 'is not a parameter of this call; did you mean limit?' },
    ]);
  });

  test('names the first errors of very many', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`u${i}`, i]));
    expect(faultsOf(() => validate('body', Schema, { ...GOOD, ...many(1_000) }))).toHaveLength(20);
    expect(faultsOf(() => validate('body', Schema, { ...GOOD, states: Array(1_000).fill(1) }))).toHaveLength(20);
  });

  test('does not repeat the sent value', () => {
    const secret = { name: ['s3cret'], since: 's3cret', dryRun: 's3cret', states: ['s3cret'], target: 's3cret' };
    expect(JSON.stringify(faultsOf(() => validate('body', Schema, secret)))).not.toContain('s3cret');
  });

  test('an empty id in a path is treated as a path that ends too early', () => {
    expect(faultsOf(() => validatePath({ tenant: '' }))).toEqual([
      { code: 'not_found', detail: expect.stringContaining('remove the last slash') },
    ]);
    expect(faultsOf(() => validatePath({ tenant: 'shop' }))).toEqual([
      { parameter: 'tenant', detail: 'must be ten_ followed by 20 characters' },
    ]);
  });
});
