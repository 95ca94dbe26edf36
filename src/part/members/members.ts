import { CLUSTER_KEYS } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';

const CLUSTER_BEAT = readNamedScript(new URL('cluster-beat.lua', import.meta.url));
/** The time for which a dispatcher is considered to be active after a heartbeat. */
const KEPT_MS = 3_000;

/** Lists all dispatchers that are active. */
export interface Members {
  /** Registers this dispatcher as active. Returns the names of all active dispatchers. */
  readonly beat: () => Promise<readonly string[]>;
  /** Removes this dispatcher. Returns the names of the other dispatchers. */
  readonly leave: () => Promise<readonly string[]>;
}

/** @param name of this process, never used by another */
export function createMembers(redis: ScriptClient, name: string): Members {
  const call = async (keptMs: number) => {
    const [, ...names] = await callScript(redis, CLUSTER_BEAT, { keys: CLUSTER_KEYS, args: { name, keptMs } });
    return names as string[];
  };
  return {
    beat: () => call(KEPT_MS),
    leave: () => call(0),
  };
}
