import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { launch, type Page } from 'puppeteer-core';
import { temporaryFolder } from '../temporary-folder.ts';

const run = promisify(execFile);

/** The browser, as packaged by Debian. */
const PROGRAM = 'chromium-headless-shell';

const TIMEOUT_MS = 60_000;

/** Returns the reason why this machine has no browser (including a solution), or undefined if it has one. */
export async function browserRefusal(): Promise<string | undefined> {
  try {
    await run(PROGRAM, ['--version']);
    return undefined;
  } catch {
    return `${PROGRAM} not found: on Debian, test/support/browser/install.sh installs it as root`;
  }
}

/** Adds everything that a developer would see as a problem of the page. */
function watch(page: Page, origin: string, problems: string[]): void {
  // Includes violations of the content security policy.
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warn') problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', error => problems.push(`exception: ${String(error)}`));
  page.on('requestfailed', request => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('response', response => {
    if (response.status() >= 400) problems.push(`${response.url()}: ${response.status()}`);
  });
  page.on('request', request => {
    const to = new URL(request.url());
    if (to.protocol !== 'data:' && to.origin !== origin) problems.push(`request to ${to.origin}`);
  });
}

/**
 * Opens a page in a browser, calls `use`, and closes the browser.
 * @throws if there was an error in the console, an exception, or a request that failed or went to another origin, even
 * if `use` did not throw
 */
export async function withPage(url: string, use: (page: Page) => Promise<void>): Promise<void> {
  const folder = await temporaryFolder('browser');
  const browser = await launch({
    executablePath: (await run('which', [PROGRAM])).stdout.trim(),
    userDataDir: folder.path,
    // The sandbox of Chromium does not work as root. All pages are served by the tests.
    args: ['--no-sandbox'],
    // The browser ends with this process.
    pipe: true,
    protocolTimeout: TIMEOUT_MS,
  });
  const problems: string[] = [];
  let cause: unknown;
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    watch(page, new URL(url).origin, problems);
    await page.goto(url);
    await use(page);
  } catch (error) {
    cause = error;
  } finally {
    await browser.close();
    await folder.remove();
  }
  if (problems.length > 0) throw new Error(`${url}: ${problems.join('; ')}`, { cause });
  if (cause !== undefined) throw cause;
}
