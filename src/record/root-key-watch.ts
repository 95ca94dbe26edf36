import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { HintIndex } from '../hints/hints.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS } from '../redis/keys.ts';
import type { Impairment } from '../telemetry/role-health.ts';

/** Follows the root key that the leading controller signs and encrypts with. */
export interface RootKeyWatch {
  /** Returns true if this role does not have that key. False before the first term of a controller. */
  readonly differs: () => boolean;
  readonly impairments: () => readonly Impairment[];
  /** Checks now. If Redis does not respond, the last result is kept. */
  readonly look: () => Promise<void>;
  readonly stop: () => void;
}

const LOOK_EVERY_MS = 5_000;
/** Before the first term of a controller. Its work must not be processed with a different key. */
const LOOK_EARLY_EVERY_MS = 1_000;

/** Returns the impairment of a role without the controller's root key. */
export function rootKeyMismatch(controller: string): Impairment {
  const message = `The root key is not that of ${controller}: provide the same files to every controller, facade, and dispatcher (SLUICE_ROOT_KEY_FILE).`;
  return { reason: 'RootKeyMismatch', cause: 'settings', message };
}

/**
 * Watches the `rootKey` field in the cluster's hash, and makes this key the first key of the ring. `onMatch` is called
 * when the ring contains the key again.
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
      // However, the keys may have changed.
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

/** Returns hints that can't be picked while `isHeld` returns true. While it does, no work is started or lost. */
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
