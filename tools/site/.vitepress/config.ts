import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';

/** Linked documents that are not pages. */
const DOCUMENTS = ['openapi.json', 'events-openapi.json'];

/** Links to files outside of `docs`, which are not part of the website. The link is removed, and its text is kept. */
const OUTSIDE = /^(\.\.\/)+(?!docs\/)/;

const page = (text: string, link: string) => ({ text, link });

export default defineConfig({
  title: 'Sluice',
  description: 'A Kubernetes operator that distributes event streams to integration partners',
  srcDir: '../../docs',
  outDir: '../../dist/site',
  cacheDir: '../../node_modules/.cache/vitepress',
  cleanUrls: true,
  lastUpdated: false,
  head: [],
  // The pages contain Prometheus and Go templates, `{{ … }}`, which Vue must not interpret.
  vue: { template: { compilerOptions: { delimiters: ['{%%', '%%}'] } } },
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
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    sidebar: [
      { text: 'Start', items: [page('Overview', '/'), page('Tour', '/tour'), page('Glossary', '/glossary')] },
      {
        text: 'Concepts',
        items: [page('Architecture', '/architecture'), page('Routing', '/routing'), page('Limits', '/limits')],
      },
      {
        text: 'For producers and partners',
        items: [
          page('Events', '/events'),
          page('CloudEvents', '/cloudevents'),
          page('Deliveries', '/deliveries'),
          page('Receivers', '/receivers'),
          page('REST interface', '/rest'),
          page('Problems', '/problems'),
        ],
      },
      {
        text: 'For operators',
        items: [
          page('Quickstart', '/quickstart'),
          page('Installation', '/install'),
          page('Kinds', '/kinds'),
          page('Container images', '/image'),
          page('Configuration', '/configuration'),
          page('Permissions', '/permissions'),
          page('Audit', '/audit'),
          page('Metrics', '/metrics'),
          page('Telemetry', '/telemetry'),
          page('Runbooks', '/runbooks'),
          page('Benchmark', '/benchmark'),
        ],
      },
    ],
  },
});
