import { readNamedScript } from '../../redis/named-scripts.ts';
import { callForBuffers, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const CLAIMED_BODIES = readNamedScript(new URL('claimed-bodies.lua', import.meta.url));

/** An event whose body was not included in the message with its claims. */
export interface ClaimedRef {
  readonly ref: string;
  /** The lanes of its claims. At least one. */
  readonly lanes: readonly string[];
}

export interface ClaimedBody {
  /** Undefined if the event has been removed by retention, or if none of its claims can be used. */
  readonly body: Buffer | undefined;
  /** True for each claim that can be used as if it had been made by this call. */
  readonly usable: readonly boolean[];
}

/**
 * Reads the bodies of up to 16 claimed events, and checks their claims again. A claim can't be used if the dispatcher
 * does not have it any more, if its event has ended, or if no event of its lane may be sent. If the part was removed or
 * its control data is missing, none of the claims can be used.
 */
export type ReadClaimedBodies = (
  part: Part,
  dispatcher: string,
  events: readonly ClaimedRef[],
) => Promise<readonly ClaimedBody[]>;

export function createReadClaimedBodies(redis: ScriptClient): ReadClaimedBodies {
  return async function readClaimedBodies(part, dispatcher, events) {
    const more = events.flatMap(({ ref, lanes }) => lanes.flatMap(lane => [ref, lane]));
    const call = { keys: partKeys(part), args: { gen: part.gen, dispatcher }, more };
    const [answer, letters, ...pieces] = await callForBuffers(redis, CLAIMED_BODIES, call);
    if (answer !== 'OK') return events.map(({ lanes }) => ({ body: undefined, usable: lanes.map(() => false) }));
    const all = (letters as Buffer).toString('latin1');
    let at = 0;
    return events.map(({ lanes }, i) => {
      const [body, rest] = pieces.slice(2 * i, 2 * i + 2) as [Buffer, Buffer];
      const whole = rest.length === 0 ? body : Buffer.concat([body, rest]);
      return { body: whole.length === 0 ? undefined : whole, usable: lanes.map(() => all[at++] === 'y') };
    });
  };
}
