import { checkServers, RedisSetupError } from './check.ts';
import type { RedisClient } from './client.ts';

/** Watches the Redis settings. The settings change after a failover to a server with other settings. */
export interface SettingsWatch {
  /** Returns the settings to change. */
  readonly problem: () => RedisSetupError | undefined;
  readonly stop: () => void;
}

/** A setting can be changed without closing any connections. In a Cluster, a node can be replaced. */
export const CHECK_SETTINGS_EVERY_MS = 60_000;

/**
 * Checks the settings after each reconnect, and at regular intervals. The client has been checked just now.
 *
 * @param checkOthers checks the settings that do not prevent a role from working. Called at regular intervals
 */
export function watchSettings(
  client: Pick<RedisClient, 'callAll' | 'cluster' | 'onReconnect'>,
  everyMs: number,
  checkOthers: () => void,
): SettingsWatch {
  let problem: RedisSetupError | undefined;

  function check(): void {
    checkServers(client).then(
      () => (problem = undefined),
      (error: unknown) => {
        // If Redis is unavailable, the settings are not known.
        if (error instanceof RedisSetupError) problem = error;
      },
    );
  }

  client.onReconnect(check);
  const timer = setInterval(() => {
    check();
    checkOthers();
  }, everyMs).unref();
  return { problem: () => problem, stop: () => clearInterval(timer) };
}
