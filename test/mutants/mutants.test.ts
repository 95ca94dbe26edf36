import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MUTANTS } from './mutants.ts';

describe('mutants', () => {
  test.each(MUTANTS.map(({ name, ...mutant }) => [name, mutant] as const))(
    'the text of the mutant occurs once in its file: %s',
    (_name, mutant) => {
      const text = readFileSync(new URL(`../../${mutant.file}`, import.meta.url), 'utf8');
      expect(text.split(mutant.from)).toHaveLength(2);
      expect(mutant.to).not.toBe(mutant.from);
    },
  );

  test('each test file of a mutant exists', () => {
    const named = new Set(MUTANTS.flatMap(({ test: file }) => file ?? []));
    expect([...named].filter(file => !existsSync(new URL(`../../${file}`, import.meta.url)))).toEqual([]);
  });

  test('names of mutants are unique', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  });
});
