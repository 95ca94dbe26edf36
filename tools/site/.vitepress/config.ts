import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';

/** Documents that pages link to, and that are no pages. */
const DOCUMENTS = ['openapi.json', 'events-openapi.json'];

/** Links that leave `docs`: the site does not have these files, so their text stays and the link goes. */
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
  // The pages show templates of Prometheus and Go, `{{ … }}`; Vue must not read them.
  vue: { template: { compilerOptions: { delimiters: ['{%%', '%%}'] } } },
  markdown: {
    languageAlias: { promql: 'sql' },
    config(md) {
      const outside: boolean[] = [];
      // The rule of VitePress turns `page.md` into the address of the page, and checks that it exists.
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
