import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { renderMetrics } from '../../tools/generate/docs/metrics.ts';
import { startTour, type TourProcess } from '../support/tour/process.ts';
import { missingLines, readExamples } from '../support/tour/readme.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Commands that this test does not run, with the reason. */
const SKIPPED: readonly { readonly commands: RegExp; readonly because: string }[] = [
  { commands: /^make run +#.*\nmake test +#/, because: 'this is part of `make test`' },
  { commands: /^make run$/, because: 'the tour runs already' },
  { commands: /^\. \/tmp\/sluice-run-XXXXXX\/env$/, because: 'the real line is run before each example' },
];

/** The pages with commands, in reading order. Commands can use the results of previous commands. */
const PAGES = [
  'README.md',
  'docs/tour.md',
  'docs/partners.md',
  'docs/cloudevents.md',
  'docs/deliveries.md',
  'docs/permissions.md',
  'docs/telemetry.md',
  'CONTRIBUTING.md',
];
/** Pages whose commands are run by another project: `redis`, `image`, `chart`, or `node`. */
const ELSEWHERE = [
  'docs/configuration.md',
  'docs/image.md',
  'docs/install.md',
  'docs/operations.md',
  'docs/quickstart.md',
];

const examples = PAGES.flatMap(page =>
  readExamples(readFileSync(join(ROOT, page), 'utf8')).map(example => ({
    ...example,
    page,
    first: example.commands.split('\n')[0] ?? '',
    skipped: SKIPPED.find(({ commands }) => commands.test(example.commands.trim()))?.because,
  })),
);

let tour: TourProcess;
/** The line that the tour prints for other terminals. */
let line: string;

beforeAll(async () => {
  tour = await startTour();
  line = (await tour.waitForLine(/^ +\. .*\/env$/, 120_000)).trim();
  state = join(tour.folder, 'variables');
});

afterAll(() => tour?.remove());

/** Variables set by the examples, which are also available to later examples. */
const VARIABLES = [
  ...new Set(examples.flatMap(({ commands }) => [...commands.matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name))),
];
let state: string;

async function run(commands: string): Promise<{ code: number; output: string }> {
  const keep = `declare -p ${VARIABLES.join(' ')} > '${state}' 2>/dev/null || true`;
  const script = `${line}\nif [ -e '${state}' ]; then . '${state}'; fi\n${commands}\n${keep}`;
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, output: `${stdout}${stderr}` };
}

/** Read-only commands, which can be repeated. A counter is available shortly after the counted event. */
function isReading(commands: string): boolean {
  return /^(curl -s "\$OPS_URL|kubectl (get|describe))/.test(commands) && commands.trim().split('\n').length === 1;
}

test('all pages with commands are listed', () => {
  const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).filter(page =>
    readFileSync(join(ROOT, page), 'utf8').includes('```sh\n'),
  );
  expect(pages.toSorted()).toEqual([...PAGES, ...ELSEWHERE].toSorted());
});

test('the skipped examples are known, and most examples are not skipped', () => {
  expect(examples.filter(({ skipped }) => skipped !== undefined)).toHaveLength(SKIPPED.length);
  expect(examples.length).toBeGreaterThan(12);
});

test.each(examples.filter(({ skipped }) => skipped === undefined))('$page: $first', async ({ commands, output }) => {
  let result = await run(commands);
  const isPrinted = () => result.code === 0 && missingLines(output, result.output).length === 0;
  const endMs = performance.now() + 60_000;
  while (isReading(commands) && !isPrinted() && performance.now() < endMs) {
    await delay(500);
    result = await run(commands);
  }
  expect(result).toMatchObject({ code: 0 });
  expect({ missing: missingLines(output, result.output), in: result.output }).toMatchObject({ missing: [] });
});

function row(name = '', type = '', help = ''): string {
  return `${name} (${type}): ${help}`;
}

test('docs/metrics.md describes every metric of a process with all roles, using the same text', async () => {
  const { output } = await run('curl -s "$OPS_URL/metrics"');
  // One sentence describes the metrics of prom-client for all Node processes.
  const live = [...output.matchAll(/^# HELP (?!process_|nodejs_)(\S+) (.*)\n# TYPE \S+ (\S+)/gm)];
  const page = await renderMetrics();
  const documented = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| .* \| (.*) \|$/gm)];
  expect(documented.map(([, name, type, help]) => row(name, type, help)).toSorted()).toEqual(
    live.map(([, name, help, type]) => row(name, type, help)).toSorted(),
  );
});

test('the tour ends on request without leaving any processes or files behind', async () => {
  tour.kill('SIGTERM');
  expect(await tour.exited).toBe(143);
  await rm(state);
  expect(await tour.leftovers()).toEqual([]);
});
