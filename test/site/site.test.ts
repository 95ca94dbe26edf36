import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browserRefusal, withPage } from '../support/browser/browser.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SITE = join(ROOT, 'dist', 'site');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

const noBrowser = await browserRefusal();
if (noBrowser !== undefined) console.warn(`SKIPPED: the pages of the documentation site; ${noBrowser}`);

/** Serves the site like a web server that adds `.html` to the path of a page. */
const server: Server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://site');
  const path = pathname.endsWith('/') ? `${pathname}index.html` : extname(pathname) ? pathname : `${pathname}.html`;
  readFile(join(SITE, path)).then(
    body => response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' }).end(body),
    () => response.writeHead(404).end(),
  );
});
let origin = '';

beforeAll(async () => {
  await promisify(execFile)('make', ['docs'], { cwd: ROOT });
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const texts = (page: Page, selector: string) =>
  page.$$eval(selector, elements => elements.map(({ textContent }) => textContent.trim()));

test('make docs builds a page for each file in docs', () => {
  const pages = globSync('docs/**/*.md', { cwd: ROOT }).map(path => path.replace(/^docs\/|\.md$/g, ''));
  const built = globSync('**/*.html', { cwd: SITE }).map(path => path.replace(/\.html$/, ''));
  expect(built.toSorted()).toEqual([...pages, '404'].toSorted());
});

test.skipIf(noBrowser !== undefined)('the overview has a title, an icon, a sidebar, and an outline', async () => {
  await withPage(`${origin}/`, async page => {
    expect(await texts(page, '.VPNavBarTitle .title')).toEqual(['Sluice']);
    expect(await texts(page, '.VPDocOutlineItem a')).toContain('For operators');
    expect(await texts(page, '.VPSidebarItem .link')).toEqual(
      expect.arrayContaining(['Quickstart', 'REST interface', 'Problems', 'Identity providers']),
    );
    expect(await page.$eval('body', body => body.innerText)).not.toContain('{{');
    expect(await page.evaluate('document.querySelector(".VPNavBarTitle img").naturalWidth')).toBeGreaterThan(0);
  });
});

test.skipIf(noBrowser !== undefined)('the search finds a page, and opens it', async () => {
  await withPage(`${origin}/tour`, async page => {
    await page.locator('.VPNavBarSearch button').click();
    await page.locator('.VPLocalSearchBox input').fill('Keycloak');
    await page.locator('.VPLocalSearchBox .result').click();
    await page.waitForFunction('location.pathname === "/identity-providers"');
    // The address changes before the page.
    await page.waitForFunction('/^Identity providers/.test(document.querySelector("h1")?.textContent ?? "")');
  });
});

test.skipIf(noBrowser !== undefined)('a page with a wide table fits on the screen of a phone', async () => {
  await withPage(`${origin}/problems`, async page => {
    await page.setViewport({ width: 390, height: 844 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  });
});
