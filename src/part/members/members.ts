import { CLUSTER_KEYS } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';

const CLUSTER_BEAT = readNamedScript(new URL('cluster-beat.lua', import.meta.url));
/** How long a dispatcher counts as at work after a heartbeat. */
const KEPT_MS = 3_000;

/** The dispatchers that are at work. */
export interface Members {
  /** Says that this one is at work. Returns the names of all. */
  readonly beat: () => Promise<readonly string[]>;
  /** Says that this one is not at work, or leaves. Returns the names of the others. */
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
