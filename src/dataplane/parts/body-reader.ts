import { setTimeout as delay } from 'node:timers/promises';
import type { Part } from '../../part/keys.ts';
import type { ReadBodies } from '../../part/log/read-bodies.ts';
import type { RoomShare } from './room.ts';

/** The number of bodies that can be read by a call. Each of them can have up to 1 MiB. */
const BODIES_AT_ONCE = 16;

/** How long an attempt waits until there is room for its body. */
const PATIENCE_MS = 500;

/** Limits the memory that large bodies use during attempts. */
export interface BodyShare {
  /** Waits until there is room for a body of this size. Returns false if there is no room in time. */
  readonly hold: (bytes: number) => Promise<boolean>;
  readonly release: (bytes: number) => void;
}

/** @param room the bytes for the parts of the workspace */
export function createBodyShare(room: RoomShare): BodyShare {
  const fits = (bytes: number) => bytes <= room.free();
  return {
    async hold(bytes) {
      if (!fits(bytes)) {
        let isLate = false;
        const late = delay(PATIENCE_MS).then(() => {
          isLate = true;
        });
        while (!fits(bytes) && !isLate) {
          await Promise.race([late, new Promise<void>(resolve => room.wait(resolve))]);
        }
        if (!fits(bytes)) return false;
      }
      room.take(bytes);
      return true;
    },
    release: bytes => room.give(bytes),
  };
}

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
