import { type RootKeyWatch, watchRootKey } from '../record/root-key-watch.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Impairment, ImpairmentCheck } from '../telemetry/role-health.ts';

/** Compares a standby controller's root key to the leader's. All other roles need the same key as the leader. */
export interface StandbyKey {
  readonly impairments: ImpairmentCheck;
  readonly stop: () => Promise<void>;
}

const MISMATCH: Impairment = {
  reason: 'RootKeyMismatch',
  cause: 'settings',
  message:
    'The root key is not that of the leading controller: give every controller, facade and dispatcher the same file (SLUICE_ROOT_KEY_FILE).',
};

/** Starts the comparison without waiting for Redis, as the controller is started before Redis answers. */
export function watchStandbyKey(
  options: Pick<Parameters<typeof watchRootKey>[0], 'fingerprint' | 'setTimer'> & {
    readonly redis: Pick<RedisClient, 'readHash'>;
    readonly isLeading: () => boolean;
  },
): StandbyKey {
  let watch: RootKeyWatch | undefined;
  const started = watchRootKey(options).then(running => {
    watch = running;
  });
  return {
    impairments: () => (watch?.differs() === true && !options.isLeading() ? [MISMATCH] : []),
    stop: async () => {
      await started;
      watch?.stop();
    },
  };
}
