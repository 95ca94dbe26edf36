import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { accountKeys, CLUSTER_KEYS, sandboxUseKeys, tenantKeys } from '../redis/keys.ts';
import { readNamedScript } from '../redis/named-scripts.ts';

import { partKeys } from './keys.ts';

const root = new URL('./', import.meta.url);
const PART_KEYS = partKeys({ tenant: 'ten_a', queue: 'q', gen: 'g', number: 0 });
/** Scripts for slots other than those of a part include the slot in their name. */
const OTHER_SLOTS = {
  account: accountKeys('acc_a'),
  tenant: tenantKeys('ten_a'),
  cluster: CLUSTER_KEYS,
  use: sandboxUseKeys('ten_a'),
  // Any hash of a sandbox run.
  run: { hash: '{s:ten_a:run}:meta' },
};
const keysOf = (file: string) => {
  const slot = Object.keys(OTHER_SLOTS).find(name => file.includes(`/${name}-`));
  return slot === undefined ? PART_KEYS : OTHER_SLOTS[slot as keyof typeof OTHER_SLOTS];
};
const LIBRARIES = new Set(globSync('**/*.lua', { cwd: root }).filter(file => !isScript(file)));

function isScript(file: string): boolean {
  return readNamedScript(new URL(file, root)).source.startsWith('#!lua');
}

const scripts = globSync('**/*.lua', { cwd: root }).filter(isScript);
const screaming = (kind: string, name: string) => `${kind}_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`;

test('finds scripts and libraries', () => {
  expect(scripts.length).toBeGreaterThan(4);
  expect(LIBRARIES.size).toBeGreaterThan(4);
});

/** Scripts that may remove a hash because it only contains the data of a single call. */
const REMOVES_A_SMALL_KEY = 'idempotency/end-call.lua';

test('scripts free keys in the background because DEL blocks Redis while it frees a large key', () => {
  const all = new URL('../', import.meta.url);
  const deleting = globSync('**/*.lua', { cwd: all }).filter(file =>
    readFileSync(new URL(file, all), 'utf8').includes("'DEL'"),
  );
  expect(deleting).toEqual([REMOVES_A_SMALL_KEY]);
});

describe.each(scripts)('%s', file => {
  const script = readNamedScript(new URL(file, root));
  const KEYS = keysOf(file);
  const code = script.source.replaceAll(/--.*$/gm, '');
  const used = (kind: string) => new Set(code.match(new RegExp(`\\b${kind}_[A-Z_]+\\b`, 'g')));

  test('declares keys of a part, and uses exactly those', () => {
    for (const name of script.keys) expect(KEYS).toHaveProperty(name, expect.any(String));
    expect([...used('KEY')].toSorted()).toEqual(script.keys.map(name => screaming('KEY', name)).toSorted());
    const { listedKeys } = script;
    if (listedKeys === undefined) return;
    expect(KEYS).toHaveProperty(listedKeys, expect.any(Function));
    expect(code.split(`FIRST_${listedKeys.toUpperCase()}`).length).toBeGreaterThan(2);
  });

  test('uses exactly the arguments that it declares', () => {
    expect([...used('ARG')].toSorted()).toEqual(script.args.map(name => screaming('ARG', name)).toSorted());
  });

  test('declares the keys of each command', () => {
    const plain = code.replaceAll("redis.call('TIME')", '');
    const commands = [
      ...plain.matchAll(/redis\.call\(\s*('\w+'|command|ARG_COMMAND)\s*,\s*('STREAM',\s*)?([^\s,)]+)/g),
    ];
    expect(commands).toHaveLength([...plain.matchAll(/redis\.p?call/g)].length);
    for (const [call, , , key = ''] of commands)
      expect(`${call}: ${key}`).toMatch(/: (KEY_[A-Z_]+|key|hold|KEYS\[at\])$|keyOfHour\(hour\)?$/);
  });
});
