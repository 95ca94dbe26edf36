import type { Role } from './config/config.ts';

/**
 * The size of half of the space for young objects, in MiB. By default, Node uses up to 16 MiB, and fills this space
 * during startup.
 */
const SEMI_SPACE_MIB = 4;

/** Roles that keep every object in the cluster on their heap. */
const KEEP_OBJECTS: readonly (Role | 'all')[] = ['controller', 'facade', 'all'];

/** Fraction of container memory available for old objects. The rest is needed for code, buffers and young objects. */
const HEAP_SHARE = 0.75;

const MIB = 1_048_576;

/**
 * Returns the Node flags required for a role that are missing. The flags must be set before Node runs any code.
 *
 * - A small space for young objects saves memory. Ingress and dispatchers keep Node's default because they create many
 *   young objects: with 4 MiB, they would take 15 % more CPU time under load.
 * - By default, Node uses half of the container memory as its heap, which isn't enough for the objects of a cluster.
 */
export function missingNodeFlags(facts: {
  readonly word: string | undefined;
  /** Flags from the command line and NODE_OPTIONS. */
  readonly given: readonly string[];
  /** Container memory limit in bytes. If it is 0, or exceeds the memory of the machine, there is no limit. */
  readonly limitBytes: number;
  readonly machineBytes: number;
}): string[] {
  const { word, given, limitBytes, machineBytes } = facts;
  const isGiven = (flag: string) => given.some(each => each.replaceAll('_', '-').startsWith(flag));
  const flags: string[] = [];
  if (KEEP_OBJECTS.includes(word as Role) && !isGiven('--max-semi-space-size')) {
    flags.push(`--max-semi-space-size=${SEMI_SPACE_MIB}`);
  }
  const isLimited = limitBytes > 0 && limitBytes < machineBytes;
  if (isLimited && KEEP_OBJECTS.includes(word as Role) && !isGiven('--max-old-space-size')) {
    flags.push(`--max-old-space-size=${Math.floor((limitBytes * HEAP_SHARE) / MIB)}`);
  }
  return flags;
}
