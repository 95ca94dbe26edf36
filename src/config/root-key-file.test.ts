import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { readRootKey, readRootKeys } from './root-key-file.ts';

let folder = '';
beforeEach(async () => {
  folder = (await temporaryFolder('root-keys')).path;
  return () => rmSync(folder, { recursive: true });
});

const write = (name: string, byte: number, bytes = 32) => writeFileSync(join(folder, name), Buffer.alloc(bytes, byte));

function read(name = 'root.key') {
  const problems: string[] = [];
  const keys = readRootKeys(join(folder, name), problems)?.map(
    each => `${each.name} ${each.secret[0]}${each.isRetired ? ' retired' : ''}`,
  );
  return { keys, problems };
}

describe('root keys', () => {
  test('are the first file, and files in the same folder with a number from 2, sorted by number', () => {
    write('root.key', 1);
    for (const [i, suffix] of ['10', '2', '9', '1', '02', '2x', 'bak', '-3', ''].entries())
      write(`root.key.${suffix}`, 20 + i);
    write('root2.key', 50);
    write('another.key.3', 51);
    expect(read()).toEqual({ keys: ['root.key 1', 'root.key.2 21', 'root.key.9 22', 'root.key.10 20'], problems: [] });
  });

  test('include an oldest key that can be retired using a file with any content', () => {
    write('root.key', 1);
    write('root.key.3', 3);
    for (const bytes of [0, 5, 32]) {
      write('root.key.retired', 1, bytes);
      expect(read()).toEqual({ keys: ['root.key 1 retired', 'root.key.3 3'], problems: [] });
    }
    rmSync(join(folder, 'root.key.retired'));
    expect(read().keys).toEqual(['root.key 1', 'root.key.3 3']);
  });

  test.each<[string, () => void, string]>([
    ['is retired without a newer one', () => (write('root.key', 1), write('root.key.retired', 0)), 'newer root key'],
    ['is missing', () => write('root.key.2', 2), 'ENOENT'],
    ['is too short', () => write('root.key', 1, 31), 'has 31 bytes, but at least 32 bytes are required'],
    [
      'is followed by one that is too short',
      () => (write('root.key', 1), write('root.key.2', 2, 31)),
      'root.key.2 has 31',
    ],
    ['is followed by a folder', () => (write('root.key', 1), mkdirSync(join(folder, 'root.key.2'))), 'EISDIR'],
    ['is followed by the same key', () => (write('root.key', 1), write('root.key.2', 1)), 'same key as root.key'],
  ])('cannot be used if the first one %s', (_what, prepare, problem) => {
    prepare();
    const { keys, problems } = read();
    expect(keys).toBeUndefined();
    expect(problems.join('\n')).toMatch(/^SLUICE_ROOT_KEY_FILE: /);
    expect(problems.join('\n')).toContain(problem);
    expect(problems).toHaveLength(1);
  });

  test('are required', () => {
    const problems: string[] = [];
    expect(readRootKey(undefined, problems)).toBeUndefined();
    expect(problems).toEqual([expect.stringContaining('SLUICE_ROOT_KEY_FILE: required')]);
  });
});
