import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { HintIndex } from '../hints/hints.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS } from '../redis/keys.ts';
import type { Impairment } from '../telemetry/role-health.ts';

/** Follows the root key that the leading controller signs and encrypts with. */
export interface RootKeyWatch {
  /** Returns whether this role lacks that key. False before the first term of a controller. */
  readonly differs: () => boolean;
  readonly impairments: () => readonly Impairment[];
  /** Checks now. Keeps the last result if Redis does not respond. */
  readonly look: () => Promise<void>;
  readonly stop: () => void;
}

const LOOK_EVERY_MS = 5_000;
/** Before the first term of a controller. Its work must not be processed with another key. */
const LOOK_EARLY_EVERY_MS = 1_000;

/** Returns the impairment of a role that lacks the root key of the controller. */
export function rootKeyMismatch(controller: string): Impairment {
  const message = `The root key is not that of ${controller}: give every controller, facade and dispatcher the same files (SLUICE_ROOT_KEY_FILE).`;
  return { reason: 'RootKeyMismatch', cause: 'settings', message };
}

/**
 * Watches `rootKey` of the cluster's hash, and makes it the first key of the ring. `onMatch` runs when the ring has the
 * key again.
 *
 * @param keys this role's own keys
 * @param before runs before each check
 */
export async function watchRootKey(options: {
  readonly redis: Pick<RedisClient, 'readHash'>;
  readonly keys: Pick<KeyRing, 'has' | 'follow'>;
  readonly before?: () => Promise<void>;
  readonly onMatch?: () => void;
  readonly setTimer?: (run: () => void, ms: number) => () => void;
}): Promise<RootKeyWatch> {
  const { redis, keys, before, onMatch, setTimer = timer } = options;
  let theirs: string | undefined;
  let cancel = () => {};
  let stopped = false;
  const differs = () => theirs !== undefined && !keys.has(theirs);

  async function look(): Promise<void> {
    const differed = differs();
    await before?.();
    try {
      theirs = (await redis.readHash(CLUSTER_KEYS.meta)).rootKey;
      if (theirs !== undefined) keys.follow(theirs);
    } catch {
      // The keys may have changed nevertheless.
    }
    if (differed && !differs()) onMatch?.();
  }

  async function lookAgain(): Promise<void> {
    await look();
    if (!stopped) cancel = setTimer(() => void lookAgain(), theirs === undefined ? LOOK_EARLY_EVERY_MS : LOOK_EVERY_MS);
  }

  await lookAgain();
  return {
    differs,
    impairments: () => (differs() ? [rootKeyMismatch('the controller')] : []),
    look,
    stop: () => {
      stopped = true;
      cancel();
    },
  };
}

/** Returns hints that can't be picked while `isHeld` returns true. No work is started, and none is lost. */
export function holdHints(hints: HintIndex, isHeld: () => boolean): HintIndex {
  return {
    ...hints,
    pick: async (...args) => (isHeld() ? { members: [], nextMs: undefined } : hints.pick(...args)),
  };
}

function timer(run: () => void, ms: number): () => void {
  const handle = setTimeout(run, ms);
  handle.unref();
  return () => clearTimeout(handle);
}
