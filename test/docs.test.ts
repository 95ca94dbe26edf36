import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { renderDocs } from '../config/docs.ts';
import { driftedFiles } from '../config/generate.ts';
import { KINDS } from '../src/api/kinds.ts';
import { ENVIRONMENT } from '../src/config.ts';

const ROOT = join(import.meta.dirname, '..');

test('the pages in docs are what config/generate.ts writes', async () => {
  expect(driftedFiles(ROOT, await renderDocs())).toEqual([]);
});

test('the pages name every kind and every variable', async () => {
  const pages = (await renderDocs()).map(({ text }) => text).join('\n');
  for (const kind of Object.keys(KINDS)) expect(pages).toContain(`## ${kind}\n`);
  for (const variable of Object.keys(ENVIRONMENT)) expect(pages).toContain(`| \`${variable}\` |`);
});

test.each(['README.md', 'docs/configuration.md', 'docs/kinds.md', 'docs/metrics.md'])(
  'the links in %s lead somewhere',
  page => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const targets = [...text.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target);
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(
      ([, words = '']) =>
        `#${words
          .toLowerCase()
          .replaceAll(/[^\w -]/g, '')
          .replaceAll(' ', '-')}`,
    );
    const broken = targets.filter(target =>
      target.startsWith('#') ? !headings.includes(target) : !existsSync(join(ROOT, dirname(page), target)),
    );
    expect(broken).toEqual([]);
  },
);
