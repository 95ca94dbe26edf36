import { readFileSync } from 'node:fs';

/** Reads the root key; adds what is wrong with it to `problems`. */
export function readRootKey(file: string | undefined, problems: string[]): Uint8Array | undefined {
  if (file === undefined) {
    problems.push(
      'SLUICE_ROOT_KEY_FILE: needed; create a file with 32 random bytes or more (head -c 32 /dev/urandom > root.key)',
    );
    return undefined;
  }
  try {
    const key = readFileSync(file);
    if (key.length >= 32) return key;
    problems.push(`SLUICE_ROOT_KEY_FILE: ${file} has ${key.length} bytes, 32 or more are needed`);
  } catch (error) {
    problems.push(`SLUICE_ROOT_KEY_FILE: ${(error as NodeJS.ErrnoException).code ?? 'cannot be read'}: ${file}`);
  }
  return undefined;
}
