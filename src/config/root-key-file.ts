import { readFileSync } from 'node:fs';

/** Reads the root key, adding any errors to `problems`. */
export function readRootKey(file: string | undefined, problems: string[]): Uint8Array | undefined {
  if (file === undefined) {
    problems.push(
      'SLUICE_ROOT_KEY_FILE: required. To create a file with 32 random bytes, run head -c 32 /dev/urandom > root.key',
    );
    return undefined;
  }
  try {
    const key = readFileSync(file);
    if (key.length >= 32) return key;
    problems.push(`SLUICE_ROOT_KEY_FILE: ${file} has ${key.length} bytes, but at least 32 bytes are required`);
  } catch (error) {
    problems.push(`SLUICE_ROOT_KEY_FILE: ${(error as NodeJS.ErrnoException).code ?? 'cannot read the file'}: ${file}`);
  }
  return undefined;
}
