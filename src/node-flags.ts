import type { Role } from './config/config.ts';

/** Roles that keep every object of the cluster in their heap. */
const KEEP_OBJECTS: readonly (Role | 'all')[] = ['controller', 'facade', 'all'];

/** Part of the memory of the container that old objects may take; the rest is for code, buffers and young objects. */
const HEAP_SHARE = 0.75;

const MIB = 1_048_576;

/**
 * Returns the flags that Node needs for a role and was not started with. Node reads them before it runs any code.
 *
 * - The controller makes little garbage at a time: with a small young generation it takes a third less memory.
 * - Node takes half of the memory of a container as its heap; the objects of a cluster need more of it.
 */
export function missingNodeFlags(facts: {
  readonly word: string | undefined;
  /** Flags of the command line and of NODE_OPTIONS. */
  readonly given: readonly string[];
  /** Memory limit of the container, bytes; 0 or more than the machine has: there is none. */
  readonly limitBytes: number;
  readonly machineBytes: number;
}): string[] {
  const { word, given, limitBytes, machineBytes } = facts;
  const isGiven = (flag: string) => given.some(each => each.replaceAll('_', '-').startsWith(flag));
  const flags: string[] = [];
  if (word === 'controller' && !isGiven('--max-semi-space-size')) flags.push('--max-semi-space-size=4');
  const isLimited = limitBytes > 0 && limitBytes < machineBytes;
  if (isLimited && KEEP_OBJECTS.includes(word as Role) && !isGiven('--max-old-space-size')) {
    flags.push(`--max-old-space-size=${Math.floor((limitBytes * HEAP_SHARE) / MIB)}`);
  }
  return flags;
}
