import { readFile } from 'node:fs/promises';

/** Memory limit of the controller at the size that is promised, MiB. */
export const CONTAINER_MIB = 512;
/** Node takes half of a container's memory for its heap; without a limit it would rather take memory than collect. */
export const AS_IN_A_CONTAINER = { NODE_OPTIONS: `--max-old-space-size=${CONTAINER_MIB / 2}` };

/** Resident memory of a process, MiB: now, and at most since it began. NaN where there is no /proc. */
export interface ResidentMiB {
  readonly now: number;
  readonly most: number;
}

/** Of proc(5)'s `status`, whose unit is the KiB. */
export function parseResident(status: string): ResidentMiB {
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
  return { now: field('VmRSS'), most: field('VmHWM') };
}

export async function readResident(pid: number): Promise<ResidentMiB> {
  return parseResident(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''));
}

/**
 * Memory that a process has for itself, in bytes. The code of Node is not part of it, since all processes of a machine
 * share it. So the result does not depend on what else is running.
 */
export async function readOwnMemory(pid: number): Promise<number> {
  return parseOwnMemory(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => ''));
}

/** Of proc(5)'s `smaps_rollup`, whose unit is the KiB. */
export function parseOwnMemory(rollup: string): number {
  return Number(/^Anonymous:\s*(\d+) kB$/m.exec(rollup)?.[1]) * 1024;
}
