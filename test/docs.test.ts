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

test('the pages in docs are what make generate writes', async () => {
  expect(driftedFiles(ROOT, await renderDocs()), OUT_OF_DATE).toEqual([]);
});

test('the pages name every kind and every variable', async () => {
  const pages = (await renderDocs()).map(({ text }) => text).join('\n');
  for (const kind of Object.keys(KINDS)) expect(pages).toContain(`## ${kind}\n`);
  for (const variable of Object.keys(ENVIRONMENT)) expect(pages).toContain(`| \`${variable}\` |`);
});

const PAGES = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).toSorted();

test('every problem has a page of its own, and no page is left of one that is none', () => {
  const codes = globSync('docs/problems/*.md', { cwd: ROOT }).map(path => basename(path, '.md'));
  expect(codes.toSorted()).toEqual(Object.keys(PROBLEMS).toSorted());
});

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsIn(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, words = '']) => anchorOf(words));
}

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
