import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const LOOK = readNamedScript(new URL('look.lua', import.meta.url));

/** The entry that a dispatcher has in a part. See `lanes/ready.lua` for the format. */
export interface KnownDispatcher {
  readonly name: string;
  /** The time at which it is no longer active, in milliseconds of the part's clock. */
  readonly untilMs: number;
  /** The number of claims that it has. */
  readonly held: number;
}

/**
 * Reads the dispatchers which are working on a part, and the time at which its next retry is due (in milliseconds of
 * the part's clock).
 */
export type LookAtPart = (
  part: Part,
) => Promise<{ readonly dispatchers: readonly KnownDispatcher[]; readonly dueMs: number | undefined }>;

export function createLookAtPart(redis: ScriptClient): LookAtPart {
  return async function lookAtPart(part) {
    const [, due, ...entries] = (await callScript(redis, LOOK, {
      keys: partKeys(part),
      args: {},
    })) as readonly string[];
    const dispatchers: KnownDispatcher[] = [];
    for (let at = 0; at < entries.length; at += 2) {
      const [untilMs = 0, , held = 0] = (entries[at + 1] ?? '').split(' ').map(Number);
      dispatchers.push({ name: entries[at] as string, untilMs, held });
    }
    return { dispatchers, dueMs: due === '' ? undefined : Number(due) };
  };
}
