import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { RootKeyFile } from '../core/delivery/key-ring.ts';

/** The path of the root keys, and the keys loaded at startup (oldest first). */
export interface RootKeySource {
  readonly file: string;
  readonly keys: readonly RootKeyFile[];
}

const LEAST_BYTES = 32;
/** Ends the name of a file beside the root key that retires it. The content of this file does not matter. */
const RETIRED = '.retired';
const CREATE = 'To create a file with 32 random bytes, run head -c 32 /dev/urandom >';

/** Reads the root keys at startup, adding any errors to `problems`. */
export function readRootKey(file: string | undefined, problems: string[]): RootKeySource | undefined {
  if (file === undefined) {
    problems.push(`SLUICE_ROOT_KEY_FILE: required. ${CREATE} root.key`);
    return undefined;
  }
  const keys = readRootKeys(file, problems);
  return keys === undefined ? undefined : { file, keys };
}

/**
 * Reads the root key and the newer keys in the same folder, e.g. `root.key`, `root.key.2`, and `root.key.3`. If there
 * is a file `root.key.retired`, the oldest key is retired. Returns undefined if at least one key is not valid and adds
 * the error to `problems`.
 */
export function readRootKeys(file: string, problems: string[]): readonly RootKeyFile[] | undefined {
  const count = problems.length;
  const own = basename(file);
  const beside = listFolder(dirname(file), problems);
  const isRetired = beside.includes(`${own}${RETIRED}`);
  const newer = newerThan(own, beside);
  if (isRetired && newer.length === 0) {
    problems.push(`SLUICE_ROOT_KEY_FILE: ${own}${RETIRED} needs a newer root key. ${CREATE} ${own}.2`);
  }
  const keys = [own, ...newer].flatMap(name => {
    const secret = readKey(join(dirname(file), name), problems);
    return secret === undefined ? [] : [{ name, secret, ...(isRetired && name === own ? { isRetired } : {}) }];
  });
  for (const [i, { name, secret }] of keys.entries()) {
    const same = keys.slice(0, i).find(older => Buffer.compare(older.secret, secret) === 0);
    if (same === undefined) continue;
    problems.push(`SLUICE_ROOT_KEY_FILE: ${name} has the same key as ${same.name}. ${CREATE} ${name}`);
  }
  return problems.length === count ? keys : undefined;
}

/**
 * Returns the names of the files containing newer keys, i.e. with a number starting at 2 after the name, sorted by
 * number.
 */
function newerThan(own: string, beside: readonly string[]): string[] {
  const start = `${own}.`;
  const numberOf = (name: string) => Number(name.slice(start.length));
  return beside
    .filter(name => name.startsWith(start) && /^([2-9]|[1-9]\d{1,5})$/.test(name.slice(start.length)))
    .sort((a, b) => numberOf(a) - numberOf(b));
}

/** If the folder doesn't exist, the file is missing as well. Without the right to list it, the file may be readable. */
const NO_NEWER_KEYS: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'];

function listFolder(folder: string, problems: string[]): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    const { code = 'cannot list the folder' } = error as NodeJS.ErrnoException;
    if (!NO_NEWER_KEYS.includes(code)) problems.push(`SLUICE_ROOT_KEY_FILE: ${code}: ${folder}`);
    return [];
  }
}

function readKey(path: string, problems: string[]): Uint8Array | undefined {
  try {
    const key = readFileSync(path);
    if (key.length >= LEAST_BYTES) return key;
    problems.push(
      `SLUICE_ROOT_KEY_FILE: ${path} has ${key.length} bytes, but at least ${LEAST_BYTES} bytes are required`,
    );
  } catch (error) {
    problems.push(`SLUICE_ROOT_KEY_FILE: ${(error as NodeJS.ErrnoException).code ?? 'cannot read the file'}: ${path}`);
  }
  return undefined;
}
