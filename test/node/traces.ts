import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const SYSCTLS = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'net/ipv4/ip_forward',
];

/** Everything that a node creates on the machine, by name. Other nodes may be running at the same time. */
export type Traces = {
  readonly interfaces: readonly string[];
  readonly routes: readonly string[];
  /**
   * The ids of processes which use a mount of the node, inside or outside of its namespaces, or whose command line
   * contains its folder.
   */
  readonly processes: readonly number[];
  readonly mounts: readonly string[];
  readonly cgroups: readonly string[];
  readonly folders: readonly string[];
};

export const NO_TRACES: Traces = { interfaces: [], routes: [], processes: [], mounts: [], cgroups: [], folders: [] };

/** @param folder of the node, such as `/tmp/sluice-node-200` */
export async function readTraces(folder: string): Promise<Traces> {
  const name = basename(folder);
  const links = JSON.parse((await run('ip', ['-json', 'link'])).stdout) as { ifname: string }[];
  const routes = (await run('ip', ['route', 'show', 'table', 'all'])).stdout.split('\n');
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const { stdout: cgroups } = await run('find', ['/sys/fs/cgroup', '-type', 'd', '-path', `*/${name}*`]);
  const { stdout: folders } = await run('find', [dirname(folder), '-maxdepth', '1', '-name', `${name}*`]);
  return {
    interfaces: links.map(({ ifname }) => ifname).filter(each => each === name),
    routes: routes.filter(route => route.includes(`dev ${name}`)),
    processes: await findProcesses(folder),
    mounts: mounts.filter(mount => mount.includes(folder)),
    cgroups: cgroups.split('\n').filter(Boolean),
    folders: folders.split('\n').filter(Boolean),
  };
}

async function findProcesses(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter(pid => pid > 0);
  const isOfNode = async (pid: number): Promise<boolean> => {
    const texts = await Promise.all(
      ['mountinfo', 'cmdline'].map(file => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    );
    return texts.some(text => text.includes(folder));
  };
  const verdicts = await Promise.all(pids.map(isOfNode));
  return pids.filter((_, index) => verdicts[index]);
}

/**
 * Returns the state that a node must not change: kernel settings, and the packet filter of the host without its
 * counters.
 */
export async function readHostSettings(): Promise<{ filter: string[]; sysctls: string[] }> {
  const { stdout } = await run('iptables-save');
  return {
    filter: stdout
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => line.replace(/ \[.*\]$/, '')),
    sysctls: await Promise.all(
      SYSCTLS.map(async key => `${key} = ${(await readFile(`/proc/sys/${key}`, 'utf8')).trim()}`),
    ),
  };
}
