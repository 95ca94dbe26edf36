import { readFile } from 'node:fs/promises';

/** Ticks per second in /proc, which is always 100 in user space on Linux (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** Returns the user and system CPU seconds used by the processes so far, or NaN if there is no /proc. */
export async function readCpuSeconds(pids: readonly number[]): Promise<number> {
  const each = await Promise.all(
    pids.map(async pid => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
      return stat === undefined ? Number.NaN : cpuSecondsOf(stat);
    }),
  );
  return each.reduce((sum, seconds) => sum + seconds, 0);
}

/** Returns the user and system CPU seconds used by all processes of the machine so far, or NaN if there is no /proc. */
export async function readMachineCpuSeconds(): Promise<number> {
  const stat = await readFile('/proc/stat', 'utf8').catch(() => '');
  const [, user, nice, system] = stat.split(/\s+/).map(Number);
  return ((user ?? Number.NaN) + (nice ?? Number.NaN) + (system ?? Number.NaN)) / TICKS_PER_SECOND;
}

/** Fields 14 and 15 of proc(5). They are counted from the end of the name, which can contain spaces and parentheses. */
export function cpuSecondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
