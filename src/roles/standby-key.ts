import { type RootKeyWatch, rootKeyMismatch, watchRootKey } from '../record/root-key-watch.ts';
import type { RedisClient } from '../redis/client.ts';
import type { ImpairmentCheck } from '../telemetry/role-health.ts';

/** Follows the leader's root key in a standby controller. All other roles require the same keys as the leader. */
export interface StandbyKey {
  readonly impairments: ImpairmentCheck;
  readonly stop: () => Promise<void>;
}

/** Starts the comparison without waiting for Redis, because the controller is started before Redis responds. */
export function watchStandbyKey(
  options: Pick<Parameters<typeof watchRootKey>[0], 'keys' | 'before' | 'setTimer'> & {
    readonly redis: Pick<RedisClient, 'readHash'>;
    readonly isLeading: () => boolean;
  },
): StandbyKey {
  let watch: RootKeyWatch | undefined;
  const started = watchRootKey(options).then(running => {
    watch = running;
  });
  return {
    impairments: () =>
      watch?.differs() === true && !options.isLeading() ? [rootKeyMismatch('the leading controller')] : [],
    stop: async () => {
      await started;
      watch?.stop();
    },
  };
}
