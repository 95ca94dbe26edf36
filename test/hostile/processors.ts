import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/**
 * Half of the processors run ingress, the dispatcher, Redis, and the neighbor. The other half runs everything else. This
 * is what an installation does that gives the data plane nodes of its own. Without it, each flood of the facade would
 * also measure how the kernel shares a processor between the facade and the data plane.
 */

const COUNT = cpus().length;
const HALF = Math.max(1, Math.floor(COUNT / 2));
const CONTROL = `0-${HALF - 1}`;
const DATA = `${Math.min(HALF, COUNT - 1)}-${COUNT - 1}`;

/** Runs all threads of a process on some processors. Processes that it starts later inherit them. */
function pin(pid: number, processors: string): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', processors, `${pid}`], { stdio: 'ignore' });
}

/** Returns all processes that a process has started, directly or through another one. */
function descendantsOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      // The name of a program can contain spaces and parentheses.
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // It has ended.
    }
  }
  const found: number[] = [];
  for (const next = [root]; next.length > 0; ) {
    const of = children.get(next.pop() ?? 0) ?? [];
    found.push(...of);
    next.push(...of);
  }
  return found;
}

/** Runs a process of the data plane, or the neighbor, on the processors of the data plane. */
export const pinToData = (pid: number): void => pin(pid, DATA);

/** Runs this test and all that it has started so far (the API server, etcd) on the other processors. */
export function pinToControl(): void {
  for (const pid of [process.ppid, ...descendantsOf(process.ppid)]) pin(pid, CONTROL);
}
