import { readFile } from 'node:fs/promises';

/** The memory limit of the controller for the largest documented tenant, in MiB. */
export const CONTAINER_MIB = 512;
/**
 * Limits the heap to half of the memory of the container, as Node does in a container. Without a limit, Node allocates
 * more memory instead of collecting garbage.
 */
export const AS_IN_A_CONTAINER = { NODE_OPTIONS: `--max-old-space-size=${CONTAINER_MIB / 2}` };

/** The resident memory of a process, in MiB: the current value and the maximum. NaN if /proc is missing. */
export interface ResidentMiB {
  readonly now: number;
  readonly most: number;
}

/** Parses `/proc/<pid>/status` (see proc(5)), which uses KiB. */
export function parseResident(status: string): ResidentMiB {
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
  return { now: field('VmRSS'), most: field('VmHWM') };
}

export async function readResident(pid: number): Promise<ResidentMiB> {
  return parseResident(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''));
}

/**
 * Returns the private memory of a process, in bytes. All processes share the code of Node, so this result does not
 * depend on other processes.
 */
export async function readOwnMemory(pid: number): Promise<number> {
  return parseOwnMemory(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => ''));
}

/** Parses `/proc/<pid>/smaps_rollup` (see proc(5)), which uses KiB. */
export function parseOwnMemory(rollup: string): number {
  return Number(/^Anonymous:\s*(\d+) kB$/m.exec(rollup)?.[1]) * 1024;
}
