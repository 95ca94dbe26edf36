import { globSync, readFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);

/** The paths below `src` of all files, except for tests and files that are only used in tests. */
export const files = globSync('**/*.ts', { cwd: root }).filter(file => !/\.test\.ts$|(^|\/)testing\//.test(file));

export function textOf(file: string): string {
  return readFileSync(new URL(file, root), 'utf8');
}

/** Returns the imports of a file, exactly as they are written. */
export function importsOf(file: string): string[] {
  return [
    ...textOf(file).matchAll(
      /(?:^|\n)\s*(?:import|export)\s[^;'"]*?from\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g,
    ),
  ].map(match => (match[1] ?? match[2]) as string);
}

/** Returns the path below `src` of an imported file. */
export function targetOf(file: string, name: string): string {
  return new URL(name, new URL(file, root)).pathname.slice(root.pathname.length);
}
