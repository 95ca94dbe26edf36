import { availableParallelism } from 'node:os';
import { stopOnSignal } from '../support/stop-signal.ts';
import { copyProject, type ProjectCopy } from './copy.ts';
import { type Baselines, judge } from './judge.ts';
import { MUTANTS } from './mutants.ts';

/**
 * Applies each mutant to a copy of the project and runs the tests that should detect it. Prints the mutants that were
 * not detected, and exits with 0 if there are none. Arguments are words that the name or the file of a mutant must
 * contain. Set the environment variable FROM=20 to begin with the twentieth mutant, and JOBS=4 to use four copies at
 * the same time (by default, one for each core).
 */

const words = process.argv.slice(2);
const from = Number(process.env['FROM'] || 1);
// Tests on a given Redis would disturb each other.
const isRedisGiven = Boolean(process.env['TEST_REDIS_URL'] ?? process.env['TEST_REDIS_CLUSTER_URL']);
const jobs = isRedisGiven ? 1 : Number(process.env['JOBS'] || availableParallelism());

const wanted = MUTANTS.filter(({ name, file }) => words.every(word => `${name} ${file}`.includes(word)));
const waiting = [...wanted.entries()].slice(from - 1).values();
const left: string[] = [];
let judged = 0;
const baselines: Baselines = new Map();
const copies: ProjectCopy[] = [];
let isStopping = false;

async function removeCopies(): Promise<void> {
  isStopping = true;
  await Promise.all(copies.map(copy => copy.remove()));
}

/** Judges the next mutants until there are none left. */
async function work(): Promise<void> {
  const copy = await copyProject();
  copies.push(copy);
  if (isStopping) return copy.remove();
  for (const [i, mutant] of waiting) {
    const started = performance.now();
    const verdict = await judge(copy, mutant, baselines).catch((error: unknown) => `was not judged: ${error}`);
    if (isStopping) return;
    judged++;
    const seconds = ((performance.now() - started) / 1_000).toFixed(0);
    const line = `${mutant.name} (${mutant.file})`;
    console.log(`${i + 1} of ${wanted.length}, ${seconds} s: ${line} ${verdict}`);
    if (!verdict.startsWith('detected')) left.push(`${line} ${verdict}`);
  }
}

stopOnSignal(removeCopies);
try {
  await Promise.all(Array.from({ length: jobs }, work));
} finally {
  await removeCopies();
}
console.log(['', ...left, `${judged - left.length} detected, ${left.length} not detected`].join('\n'));
process.exitCode = left.length > 0 ? 1 : 0;
