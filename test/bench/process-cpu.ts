import { readFile } from 'node:fs/promises';

/** Ticks a second of /proc, which Linux fixes at 100 for user space (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** User and system CPU seconds that the processes have used so far; NaN where there is no /proc. */
export async function readCpuSeconds(pids: readonly number[]): Promise<number> {
  const each = await Promise.all(
    pids.map(async pid => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
      return stat === undefined ? Number.NaN : cpuSecondsOf(stat);
    }),
  );
  return each.reduce((sum, seconds) => sum + seconds, 0);
}

/** Returns the user and system CPU seconds that all processes of the machine have used so far; NaN where there is no /proc. */
export async function readMachineCpuSeconds(): Promise<number> {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => '');
  const [, user, nice, system] = stat.split(/\s+/).map(Number);
  return ((user ?? Number.NaN) + (nice ?? Number.NaN) + (system ?? Number.NaN)) / TICKS_PER_SECOND;
}

/** Fields 14 and 15 of proc(5), counted behind the name, which may hold spaces and parentheses. */
export function cpuSecondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
