import { readFileSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DefaultTheme, defineConfig } from 'vitepress';
import { ICON } from '../../../src/facade/icon.ts';

const DOCS = join(import.meta.dirname, '..', '..', '..', 'docs');

/** Linked documents that are not pages. */
const DOCUMENTS = ['openapi.json', 'events-openapi.json'];

/** Links to files outside of `docs`, which are not part of the website. The link is removed, and its text is kept. */
const OUTSIDE = /^(\.\.\/)+(?!docs\/)/;

/** Returns a group for each section of the overview, with the pages that it links to. */
function sidebarOf(overview: string): DefaultTheme.SidebarItem[] {
  const [, ...sections] = overview.split(/^## /m);
  return sections.map(section => ({
    text: section.split('\n', 1)[0] ?? '',
    items: [...section.matchAll(/\[([^\]]+)\]\((\w[\w-]*)\.md\)/g)].map(([, text = '', page]) => ({
      text: text.charAt(0).toUpperCase() + text.slice(1),
      link: `/${page}`,
    })),
  }));
}

export default defineConfig({
  title: 'Sluice',
  description: 'A Kubernetes operator that distributes event streams to integration partners',
  srcDir: DOCS,
  outDir: '../../dist/site',
  cacheDir: '../../node_modules/.cache/vitepress',
  cleanUrls: true,
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: '/icon.svg', type: 'image/svg+xml' }]],
  markdown: {
    languageAlias: { promql: 'sql' },
    config(md) {
      const outside: boolean[] = [];
      // The VitePress rule converts `page.md` to the page URL and checks that the page exists.
      const vitepress = md.renderer.rules.link_open;
      md.renderer.rules.link_open = (tokens, index, options, env, self) => {
        const target = tokens[index]?.attrGet('href') ?? '';
        outside.push(OUTSIDE.test(target));
        return outside.at(-1) ? '' : (vitepress?.(tokens, index, options, env, self) ?? '');
      };
      md.renderer.rules.link_close = (tokens, index, options, _env, self) =>
        outside.pop() ? '' : self.renderToken(tokens, index, options);
    },
  },
  async buildEnd({ srcDir, outDir }) {
    for (const each of DOCUMENTS) await copyFile(join(srcDir, each), join(outDir, each));
    await writeFile(join(outDir, 'icon.svg'), ICON);
  },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    sidebar: sidebarOf(readFileSync(join(DOCS, 'index.md'), 'utf8')),
  },
});
