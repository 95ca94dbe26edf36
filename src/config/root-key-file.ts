import { readFileSync } from 'node:fs';

/** Reads the root key; what is wrong with it goes into `problems`. */
export function readRootKey(file: string | undefined, problems: string[]): Uint8Array | undefined {
  if (file === undefined) {
    problems.push(
      'SLUICE_ROOT_KEY_FILE: needed, a file with 32 random bytes or more (for example: head -c 32 /dev/urandom > root.key)',
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
