import type { Part } from '../../part/keys.ts';
import type { ReadBodies } from '../../part/log/read-bodies.ts';

/** The number of bodies that can be read by a call. Each of them can have up to 1 MiB. */
const BODIES_AT_ONCE = 16;

/**
 * Reads the event body if it was too large to be sent together with its claim. If the event has expired, this is
 * undefined.
 */
export type ReadBody = (ref: string) => Promise<Buffer | undefined>;

/**
 * Uses a single call to read all bodies that were requested in the same turn. If there are concurrent requests for the
 * same body, it is only read once.
 */
export function createReadBody(readBodies: ReadBodies, part: Part): ReadBody {
  const reading = new Map<string, Promise<Buffer | undefined>>();
  let asked: { ref: string; resolve: (body: Buffer | undefined) => void; reject: (error: unknown) => void }[] = [];

  async function readAsked(): Promise<void> {
    const all = asked;
    asked = [];
    for (let at = 0; at < all.length; at += BODIES_AT_ONCE) {
      const some = all.slice(at, at + BODIES_AT_ONCE);
      try {
        const bodies = await readBodies(
          part,
          some.map(({ ref }) => ref),
        );
        for (const [i, { resolve }] of some.entries()) resolve(bodies[i]?.length ? bodies[i] : undefined);
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
    }
  }

  return ref => {
    const known = reading.get(ref);
    if (known !== undefined) return known;
    const { promise, resolve, reject } = Promise.withResolvers<Buffer | undefined>();
    if (asked.push({ ref, resolve, reject }) === 1) setImmediate(() => void readAsked());
    const read = promise.finally(() => reading.delete(ref));
    reading.set(ref, read);
    return read;
  };
}
