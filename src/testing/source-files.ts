import { globSync, readFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);

/** Paths below `src` of all files without tests and what only tests use. */
export const files = globSync('**/*.ts', { cwd: root }).filter(file => !/\.test\.ts$|(^|\/)testing\//.test(file));

export function textOf(file: string): string {
  return readFileSync(new URL(file, root), 'utf8');
}

/** Returns what a file imports, as it is written there. */
export function importsOf(file: string): string[] {
  return [
    ...textOf(file).matchAll(
      /(?:^|\n)\s*(?:import|export)\s[^;'"]*?from\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g,
    ),
  ].map(match => (match[1] ?? match[2]) as string);
}

/** Returns the path below `src` of what a file imports. */
export function targetOf(file: string, name: string): string {
  return new URL(name, new URL(file, root)).pathname.slice(root.pathname.length);
}
