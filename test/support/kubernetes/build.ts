import { execFile } from 'node:child_process';
import { mkdir, rename, rm } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startChild } from '../child-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { acquireLock } from './build-lock.ts';
import { startProgress } from './progress.ts';

const run = promisify(execFile);

/** The version of Go that Kubernetes 1.36 requires. */
const NEEDED_GO = { major: 1, minor: 26 };

export type BuildOrder = {
  readonly name: string;
  readonly goPackage: string;
  /** The folder of the go.mod that locks the package. */
  readonly module: string;
  readonly linkerFlags: string;
  /** The path of the binary, which is written atomically. */
  readonly target: string;
};

/** Returns the reason why Go cannot build as the end of a sentence, or undefined if it can. */
async function goRefusal(): Promise<string | undefined> {
  const needed = `Go ${NEEDED_GO.major}.${NEEDED_GO.minor} or newer`;
  // With the temporary folder and GOTOOLCHAIN=local, no go.mod selects another toolchain, and none is downloaded.
  const options = { cwd: tmpdir(), env: { ...process.env, GOTOOLCHAIN: 'local' } };
  const version = await run('go', ['version'], options).then(
    ({ stdout }) => stdout,
    () => undefined,
  );
  if (version === undefined) return `${needed} is not on PATH to build them`;
  const match = /\bgo(\d+)\.(\d+)/.exec(version);
  const [major, minor] = [Number(match?.[1]), Number(match?.[2])];
  const fits = major > NEEDED_GO.major || (major === NEEDED_GO.major && minor >= NEEDED_GO.minor);
  return fits ? undefined : `${needed} is needed to build them (found: ${version.trim()})`;
}

/**
 * Builds missing targets one after the other, with low priority and under a lock. A second run waits and uses the
 * results. Progress is printed to standard error.
 * @returns the reason why nothing was built, or undefined if all targets exist
 * @throws with the last lines of the compiler if a build fails
 */
export async function buildBinaries(
  orders: readonly BuildOrder[],
  options: { lock: string; isThere: (path: string) => boolean },
): Promise<string | undefined> {
  const refusal = await goRefusal();
  if (refusal !== undefined) return refusal;
  const waiting = startProgress('waiting for another run that builds the Kubernetes binaries');
  const lock = await acquireLock(options.lock).finally(() => waiting.end());
  try {
    const open = orders.filter(({ target }) => !options.isThere(target));
    for (const [index, order] of open.entries()) {
      const progress = startProgress(`building ${order.name} (${index + 1} of ${open.length})`, { atOnce: true });
      await buildOne(order).finally(() => progress.end());
    }
  } finally {
    await lock.release();
  }
  return undefined;
}

async function buildOne(order: BuildOrder): Promise<void> {
  await mkdir(dirname(order.target), { recursive: true });
  const unfinished = join(dirname(order.target), `.${basename(order.target)}.${process.pid}`);
  const logs = await temporaryFolder('build');
  try {
    const flags = ['-trimpath', '-buildvcs=false', '-ldflags', order.linkerFlags];
    const go = startChild({
      command: 'go',
      args: ['build', ...flags, '-o', unfinished, order.goPackage],
      cwd: order.module,
      env: { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' },
      log: join(logs.path, 'go.log'),
    });
    if (go.running()) setPriority(go.pid, 10);
    const { code } = await go.exited;
    if (code !== 0) throw new Error(`building ${order.name} failed:\n${await go.logTail()}`);
    await rename(unfinished, order.target);
  } finally {
    await rm(unfinished, { force: true });
    await logs.remove();
  }
}
