import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { sweepRemains } from '../support/node-cluster/remains.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { NO_TRACES, readHostSettings, readTraces } from './traces.ts';

const START = `
const { startNode } = await import('${new URL('../support/node-cluster/node.ts', import.meta.url).href}');
const { folder } = await startNode();
console.log(folder);
setInterval(() => {}, 60_000);
`;

/** Starts a node in another process, which becomes its owner. @returns how to kill the owner, and the node's folder */
async function startElsewhere() {
  const owner = spawn(process.execPath, ['--input-type=module', '--eval', START], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface(owner.stdout)) {
    return { folder: line, pid: owner.pid as number, kill: () => owner.kill('SIGKILL') };
  }
  throw new Error('the node did not start');
}

/** Returns the pid of the watcher, a child of the owner which would clean up the folder. */
async function findWatcher(owner: number, folder: string): Promise<number> {
  const children = (await readFile(`/proc/${owner}/task/${owner}/children`, 'utf8')).trim().split(' ').map(Number);
  for (const child of children) {
    const words = (await readFile(`/proc/${child}/cmdline`, 'utf8')).split('\0');
    if (words.some(word => word.endsWith('/sweep.sh')) && words.includes(folder)) return child;
  }
  throw new Error(`no child of ${owner} watches ${folder}`);
}

describe.skipIf(nodeRefusal() !== undefined)('a node whose owner is killed', () => {
  afterEach(() => sweepRemains());

  test('ends immediately without leaving any processes or files behind', async () => {
    const before = await readHostSettings();
    const { folder, kill } = await startElsewhere();
    kill();
    await vi.waitFor(async () => expect(await readTraces(folder)).toEqual(NO_TRACES), {
      timeout: 60_000,
      interval: 200,
    });
    expect(await readHostSettings()).toEqual(before);
  });

  test('ends immediately even if its watcher is killed as well, and the next start removes the rest', async () => {
    const { folder, pid, kill } = await startElsewhere();
    process.kill(await findWatcher(pid, folder), 'SIGKILL');
    kill();
    const ended = { processes: [], interfaces: [], mounts: [], routes: [] };
    await vi.waitFor(async () => expect(await readTraces(folder)).toMatchObject(ended), {
      timeout: 60_000,
      interval: 200,
    });
    expect((await readTraces(folder)).folders).toEqual([folder]);
    expect(await sweepRemains()).toEqual([folder]);
    expect(await readTraces(folder)).toEqual(NO_TRACES);
  });
});
