import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NamedCall, type NamedScript, orderCall, readNamedScript } from './named-scripts.ts';

describe('a script with names', () => {
  let folder = '';
  let script: NamedScript;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'scripts-'));
    writeFileSync(join(folder, 'lib.lua'), 'local included = true');
    writeFileSync(
      join(folder, 'one-thing.lua'),
      '#!lua\n-- What it does.\n--@keys meta log ids*\n--@args gen readyMs ...\nlocal a\n--@include lib.lua\nreturn 1\n',
    );
    script = readNamedScript(pathToFileURL(join(folder, 'one-thing.lua')));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const keys = { log: 'L', meta: 'M', other: 'O' };
  const args = { readyMs: 5, gen: 'g' };
  const order = (call: Partial<NamedCall>) => orderCall(script, { keys, args, ...call });

  test('declares its keys and arguments as locals on the lines of their comments', () => {
    const lines = script.source.split('\n');
    expect(script.name).toBe('one-thing');
    expect(lines[0]).toBe('#!lua');
    expect(lines[2]?.trim()).toBe('local KEY_META, KEY_LOG = unpack(KEYS, 1, 2) local FIRST_IDS = 3');
    expect(lines[3]?.trim()).toBe(
      'local ARG_GEN, ARG_READY_MS = unpack(ARGV, 1, 2) local FIRST = 3 return (function()',
    );
    expect(lines.slice(4)).toEqual(['local a', 'local included = true', 'return 1', 'end)()', '']);
  });

  test('is called with names in any order; other keys are omitted', () => {
    expect(order({})).toEqual([
      ['M', 'L'],
      ['g', 5],
    ]);
    expect(order({ listed: ['i1', 'i2'], more: ['x', 'y'] })).toEqual([
      ['M', 'L', 'i1', 'i2'],
      ['g', 5, 'x', 'y'],
    ]);
  });

  test('refuses a call with different names', () => {
    expect(() => order({ keys: { log: 'L' } })).toThrow('script one-thing: no key meta');
    expect(() => order({ keys: { log: 'L', meta: () => 'M' } })).toThrow('no key meta');
    expect(() => order({ args: { gen: 'g' } })).toThrow('no argument readyMs');
    expect(() => order({ args: { ...args, limit: 1 } })).toThrow('takes no argument limit');
    const plain = { ...script, listedKeys: undefined, takesMore: false };
    expect(() => orderCall(plain, { keys, args, listed: ['i'] })).toThrow('takes no list of keys');
    expect(() => orderCall(plain, { keys, args, more: ['x'] })).toThrow('takes no more arguments');
  });
});
