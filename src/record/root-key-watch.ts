import type { HintIndex } from '../hints/hints.ts';
import type { RedisClient } from '../redis/client.ts';
import { CLUSTER_KEYS } from '../redis/keys.ts';
import type { Impairment } from '../telemetry/role-health.ts';

/** Compares the root key of a role with the root key of the leading controller. */
export interface RootKeyWatch {
  /** Returns whether the keys differed in the last check. False before the first term of a controller. */
  readonly differs: () => boolean;
  readonly impairments: () => readonly Impairment[];
  /** Checks now. Keeps the last result if Redis does not respond. */
  readonly look: () => Promise<void>;
  readonly stop: () => void;
}

const LOOK_EVERY_MS = 10_000;
/** Before the first term of a controller. Its work must not be processed with another key. */
const LOOK_EARLY_EVERY_MS = 1_000;

/**
 * Watches `rootKey` of the cluster's hash. `onMatch` runs when the keys are the same again.
 *
 * @param fingerprint of this role's own key
 */
export async function watchRootKey(options: {
  readonly redis: Pick<RedisClient, 'readHash'>;
  readonly fingerprint: string;
  readonly onMatch?: () => void;
  readonly setTimer?: (run: () => void, ms: number) => () => void;
}): Promise<RootKeyWatch> {
  const { redis, fingerprint, onMatch, setTimer = timer } = options;
  let theirs: string | undefined;
  let cancel = () => {};
  let stopped = false;
  const differs = () => theirs !== undefined && theirs !== fingerprint;

  async function look(): Promise<void> {
    const before = differs();
    try {
      theirs = (await redis.readHash(CLUSTER_KEYS.meta)).rootKey;
    } catch {
      return;
    }
    if (before && !differs()) onMatch?.();
  }

  async function lookAgain(): Promise<void> {
    await look();
    if (!stopped) cancel = setTimer(() => void lookAgain(), theirs === undefined ? LOOK_EARLY_EVERY_MS : LOOK_EVERY_MS);
  }

  await lookAgain();
  return {
    differs,
    impairments: () => {
      if (!differs()) return [];
      const message =
        'The root key is not that of the controller: give controller, facade and dispatcher the same file (SLUICE_ROOT_KEY_FILE).';
      return [{ reason: 'RootKeyMismatch', cause: 'settings', message }];
    },
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
