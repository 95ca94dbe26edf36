import { readNamedScript } from '../../redis/named-scripts.ts';
import { callForBuffers, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const BODIES = readNamedScript(new URL('bodies.lua', import.meta.url));

/** Reads the event bodies. If an event has been removed by retention, its body is empty. */
export type ReadBodies = (part: Part, refs: readonly string[]) => Promise<readonly Buffer[]>;

export function createReadBodies(redis: ScriptClient): ReadBodies {
  return async function readBodies(part, refs) {
    if (refs.length === 0) return [];
    const [, ...pieces] = await callForBuffers(redis, BODIES, { keys: partKeys(part), args: {}, more: refs });
    return refs.map((_, i) => {
      const [body, rest] = pieces.slice(2 * i, 2 * i + 2) as [Buffer, Buffer];
      return rest.length === 0 ? body : Buffer.concat([body, rest]);
    });
  };
}
