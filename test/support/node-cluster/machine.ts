import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChildProcess, startChild, waitUntilReady } from '../child-process.ts';
import { connectHost, type Network, nameOf, networkOf } from './network.ts';
import { type Place, takePlace } from './remains.ts';

const START_DEADLINE_MS = 10_000;

/** The namespaces of a node: processes, mounts, interfaces, and iptables rules that are removed together. */
export type Machine = {
  /** The name of the host's interface and of the cgroup for Pods. */
  readonly name: string;
  readonly folder: string;
  readonly network: Network;
  /** Starts a program in the namespaces. Its log is written to `<folder>/<component>.log`. */
  readonly start: (component: string, command: string, args: readonly string[]) => ChildProcess;
  /** Stops all processes in the namespaces immediately and removes the folder. */
  readonly stop: () => Promise<void>;
};

/** @throws with the end of the log if the namespaces cannot be created */
export async function startMachine(): Promise<Machine> {
  const place = await takePlace();
  try {
    const pid = await startInit(place);
    return describe(place, pid);
  } catch (error) {
    await place.sweep();
    throw error;
  }
}

/** @returns the pid of init.sh on the host */
async function startInit({ number, folder }: Place): Promise<number> {
  const { node, host, services } = networkOf(number);
  const args = [folder, nameOf(number), `${node}/30`, host, services];
  const init = startChild({
    command: 'unshare',
    // With --kill-child, init.sh ends with `unshare`, which ends with this process.
    args: [
      '--mount',
      '--net',
      '--pid',
      '--ipc',
      '--fork',
      '--kill-child',
      join(import.meta.dirname, 'init.sh'),
      ...args,
    ],
    log: join(folder, 'init.log'),
  });
  const wait = (file: string) =>
    waitUntilReady(init, () => access(join(folder, file)).then(() => true), {
      name: 'the namespaces of the node',
      deadlineMs: START_DEADLINE_MS,
    });
  await wait('pid');
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'));
  await connectHost(number, pid);
  await wait('ready');
  return pid;
}

function describe({ number, folder, sweep }: Place, pid: number): Machine {
  const children: ChildProcess[] = [];
  return {
    name: nameOf(number),
    folder,
    network: networkOf(number),
    start: (component, command, args) => {
      const child = startChild({
        command: 'nsenter',
        args: [`--target=${pid}`, '--mount', '--net', '--pid', '--ipc', '--', command, ...args],
        log: join(folder, `${component}.log`),
      });
      children.push(child);
      return child;
    },
    stop: async () => {
      await sweep();
      await Promise.all(children.map(({ exited }) => exited));
    },
  };
}
