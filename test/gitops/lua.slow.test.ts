import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { KindName } from '../../src/api/kinds/kinds.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ARGOCD, KIND_NAMES, runProgram } from './support.ts';

/** The Lua package of Debian. It has the same language version as Argo CD, and supports a hook for each line. */
const LUA = 'lua5.1';
const isInstalled = spawnSync(LUA, ['-v']).error === undefined;
if (!isInstalled) console.warn(`SKIPPED: the health checks for Argo CD; install ${LUA}`);
const HARNESS = join(import.meta.dirname, 'lines.lua');

interface HealthTests {
  readonly tests: readonly {
    readonly inputPath: string;
    readonly healthStatus: { readonly status: string; readonly message: string };
  }[];
}

/** The result of running a check with its test data. */
interface Run {
  readonly verdicts: readonly { readonly status: string | undefined; readonly message: string | undefined }[];
  readonly expected: readonly { readonly status: string; readonly message: string }[];
  /** The executed lines of code, and the lines that were not executed, without indentation. */
  readonly ran: readonly string[];
  readonly idle: readonly string[];
}

async function runCheck(kind: KindName): Promise<Run> {
  const folder = join(ARGOCD, 'resource_customizations', 'sluice.dev', kind);
  const script = join(folder, 'health.lua');
  const { tests } = parse(readFileSync(join(folder, 'health_test.yaml'), 'utf8')) as HealthTests;
  const objects = tests.map(({ inputPath }) => parse(readFileSync(join(folder, inputPath), 'utf8')));
  const data = join((await temporaryFolder('lua')).path, 'objects.lua');
  await writeFile(data, `return ${toLua(objects)}\n`);
  const answers = (await runProgram(LUA, [HARNESS, script, data]))
    .trim()
    .split('\n')
    .map(line => line.split('\t'));
  const numbers = new Set(answers.filter(([word]) => word === 'ran').map(([, line]) => Number(line)));
  const code = readFileSync(script, 'utf8')
    .split('\n')
    .map((line, i) => ({ text: line.trim(), ran: numbers.has(i + 1) }))
    .filter(({ text }) => isCode(text));
  return {
    verdicts: answers.filter(([word]) => word === 'verdict').map(([, status, message]) => ({ status, message })),
    expected: tests.map(({ healthStatus }) => healthStatus),
    ran: code.filter(({ ran }) => ran).map(({ text }) => text),
    idle: code.filter(({ ran }) => !ran).map(({ text }) => text),
  };
}

/** Returns whether a line contains code. The function that is defined here is on the last line. */
function isCode(line: string): boolean {
  return line !== '' && line !== 'end' && line !== '}' && !/^(--|local function )/.test(line);
}

/** Returns a JSON value as a Lua expression. */
function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua).join(',')}}`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, one]) => `[${JSON.stringify(key)}]=${toLua(one)}`)}}`;
}

test.skipIf(!isInstalled)('the checks return the health in their test data', async () => {
  for (const kind of KIND_NAMES) {
    const { verdicts, expected } = await runCheck(kind);
    expect(verdicts, kind).toEqual(expected);
  }
});

test.skipIf(!isInstalled)('every line of the checks is executed', async () => {
  const runs = await Promise.all(KIND_NAMES.map(runCheck));
  // The checks only differ in their remarks, none of which results in a Degraded Account.
  const ran = new Set(runs.flatMap(run => run.ran));
  const idle = runs.flatMap(run => run.idle).filter(line => !ran.has(line));
  expect([...new Set(idle)]).toEqual([]);
});
