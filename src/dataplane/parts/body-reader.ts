import { setTimeout as delay } from 'node:timers/promises';
import type { Claim } from '../../part/claims/message.ts';
import type { Part } from '../../part/keys.ts';
import type { ClaimedBody } from '../../part/log/claimed-bodies.ts';
import type { PartWorkerDeps } from './part-worker-deps.ts';
import type { RoomShare } from './room.ts';

/** The number of bodies that can be read by a call. Each of them can have up to 1 MiB. */
const BODIES_AT_ONCE = 16;

/** The time that an attempt waits until there is room for its body. */
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
          const { promise, resolve } = Promise.withResolvers<void>();
          const stopWaiting = room.wait(resolve, bytes);
          await Promise.race([late, promise]);
          stopWaiting();
        }
        if (!fits(bytes)) return false;
      }
      room.take(bytes);
      return true;
    },
    release: bytes => room.give(bytes),
  };
}

/** The body of a claimed event. */
export interface ConfirmedBody {
  /** Undefined if the event has expired. */
  readonly body: Buffer | undefined;
  /** The start of the call in which Redis confirmed the claim. */
  readonly atMs: number;
}

/**
 * Reads the event body if it was too large to be sent together with its claim. The same call confirms the claim again,
 * so its age is counted from this call. With a separate call, both replies would have to arrive within the time for
 * which a claim can be used. If the claim can't be used any more, this is undefined.
 */
export type ReadBody = (claim: Pick<Claim, 'lane' | 'ref'>) => Promise<ConfirmedBody | undefined>;

interface Asked {
  readonly lane: string;
  readonly resolve: (body: ConfirmedBody | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Uses a single call to read all bodies that were requested in the same turn. Each of them is only read once. */
export function createReadBody(
  { readBodies, name, monotonicMs }: Pick<PartWorkerDeps, 'readBodies' | 'name' | 'monotonicMs'>,
  part: Part,
): ReadBody {
  let asked = new Map<string, Asked[]>();

  async function read(events: readonly (readonly [ref: string, claims: readonly Asked[]])[]): Promise<void> {
    const atMs = monotonicMs();
    try {
      const refs = events.map(([ref, claims]) => ({ ref, lanes: claims.map(({ lane }) => lane) }));
      const bodies = await readBodies(part, name, refs);
      for (const [i, [, claims]] of events.entries()) {
        const { body, usable } = bodies[i] as ClaimedBody;
        for (const [n, { resolve }] of claims.entries()) resolve(usable[n] ? { body, atMs } : undefined);
      }
    } catch (error) {
      for (const [, claims] of events) for (const { reject } of claims) reject(error);
    }
  }

  async function readAsked(): Promise<void> {
    const all = [...asked];
    asked = new Map();
    for (let at = 0; at < all.length; at += BODIES_AT_ONCE) await read(all.slice(at, at + BODIES_AT_ONCE));
  }

  return ({ lane, ref }) => {
    const { promise, resolve, reject } = Promise.withResolvers<ConfirmedBody | undefined>();
    if (asked.size === 0) setImmediate(() => void readAsked());
    const claims = asked.get(ref) ?? [];
    asked.set(ref, claims);
    claims.push({ lane, resolve, reject });
    return promise;
  };
}
