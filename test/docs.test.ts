import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { KINDS } from '../src/api/kinds/kinds.ts';
import { ENVIRONMENT } from '../src/config/environment.ts';
import { PROBLEMS } from '../src/core/problems/problems.ts';
import { renderDocs } from '../tools/generate/docs/docs.ts';
import { anchorOf } from '../tools/generate/docs/problems.ts';
import { driftedFiles, OUT_OF_DATE } from '../tools/generate/generate.ts';

const ROOT = join(import.meta.dirname, '..');

test('the pages in docs are the files that make generate writes', async () => {
  expect(driftedFiles(ROOT, await renderDocs()), OUT_OF_DATE).toEqual([]);
});

test('the pages name every kind and every variable', async () => {
  const pages = (await renderDocs()).map(({ text }) => text).join('\n');
  for (const kind of Object.keys(KINDS)) expect(pages).toContain(`## ${kind}\n`);
  for (const variable of Object.keys(ENVIRONMENT)) expect(pages).toContain(`| \`${variable}\` |`);
});

const PAGES = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).toSorted();

test('every problem has a page, and there are no other pages', () => {
  const codes = globSync('docs/problems/*.md', { cwd: ROOT }).map(path => basename(path, '.md'));
  expect(codes.toSorted()).toEqual(Object.keys(PROBLEMS).toSorted());
});

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsIn(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, words = '']) => anchorOf(words));
}

/** Returns the paths in a page's inline code and in the first column of its text blocks; `<kind>` becomes `*`. */
function pathsIn(text: string): string[] {
  const layout = [...text.matchAll(/```text\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.split('\n').flatMap(line => foldersOf(line)),
  );
  const inline = [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
  const named = inline.filter(code => PATH.test(code));
  return [...new Set([...layout, ...named.map(code => code.replaceAll(/<\w+>/g, '*'))])];
}

const PATH = /^(?:(?:src|test|tools|config|crds|docs|bin|examples)(?:\/[\w.*<>-]+)*|[\w.*<>/-]+\.(?:ts|lua|json|md))$/;

/** Returns the folders that begin a line such as `src/http, mail   what they share`. */
function foldersOf(line: string): string[] {
  const [first = '', ...others] = (line.split(/\s{2,}/)[0] ?? '').split(', ');
  if (first === '') return [];
  return [first, ...others.map(name => join(dirname(first), name))];
}

test('paths are found in text and in blocks', () => {
  const text = 'In `src/a/<kind>.ts` and `b.lua`, not `/waas` or `any`.\n\n```text\nsrc/http, mail   they share\n```\n';
  expect(pathsIn(text)).toEqual(['src/http', 'src/mail', 'src/a/*.ts', 'b.lua']);
});

const FOR_CONTRIBUTORS = ['CONTRIBUTING.md', 'docs/architecture.md'];

test.each(FOR_CONTRIBUTORS)('the paths in %s exist', page => {
  const paths = pathsIn(readFileSync(join(ROOT, page), 'utf8'));
  const lost = paths.filter(path =>
    [path, `{src,test,tools}/**/${path}`].every(pattern => globSync(pattern, { cwd: ROOT }).length === 0),
  );
  expect(paths.length).toBeGreaterThan(3);
  expect(lost, `${page} names what does not exist`).toEqual([]);
});

test('the layout in CONTRIBUTING.md names every folder of src', () => {
  const folders = globSync('src/*/', { cwd: ROOT }).map(path => path.replace(/\/$/, ''));
  const missing = folders.filter(
    folder => !pathsIn(readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')).includes(folder),
  );
  expect(folders.length).toBeGreaterThan(5);
  expect(missing).toEqual([]);
});

test.each(PAGES)('the links in %s lead somewhere', page => {
  const path = join(ROOT, page);
  const targets = [...readFileSync(path, 'utf8').matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target);
  const broken = targets.filter(target => {
    const [file = '', anchor] = target.split('#');
    const other = file === '' ? path : join(dirname(path), file);
    return !existsSync(other) || (anchor !== undefined && !anchorsIn(other).includes(anchor));
  });
  expect(broken).toEqual([]);
});
