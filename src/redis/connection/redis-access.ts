import { type ConnectionOptions, createSecureContext } from 'node:tls';
import type { CommonRedisOptions, SentinelConnectionOptions } from 'ioredis';
import type { Logger } from '../../telemetry/log.ts';
import { type RedisSecrets, type RedisSettings, readRedisSecrets, userOf } from './redis-settings.ts';
import { parseRedisUrl } from './redis-url.ts';

/** Connection options read from files. */
type AccessOptions = Pick<CommonRedisOptions, 'username' | 'password'> &
  Pick<SentinelConnectionOptions, 'tls' | 'sentinelUsername' | 'sentinelPassword' | 'sentinelTLS'>;

export interface RedisAccess {
  /**
   * Returns the options for a new connection.
   *
   * @throws an Error with the required change if the files could not be used yet. Without them, the password would be
   * sent unencrypted
   */
  readonly options: () => AccessOptions;
  /**
   * Ensures that a client reads its files again for each connection. Works because ioredis reads these options from its
   * own object each time.
   */
  readonly keepFresh: (options: object) => void;
}

const NAMES = ['username', 'password', 'tls', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS'] as const;

/** A connection's options are read several times. Must be shorter than the shortest time between two connections. */
const FRESH_MS = 50;

const NOTHING: RedisSecrets = {
  password: undefined,
  sentinelPassword: undefined,
  ca: undefined,
  cert: undefined,
  key: undefined,
};

/**
 * Provides the current password and certificates. The files are read again for each connection. If a file is not valid,
 * for example because it is being replaced, the last valid content is used.
 */
export function createRedisAccess(settings: RedisSettings, log: Logger): RedisAccess {
  const url = parseRedisUrl(settings.url);
  let secrets = NOTHING;
  let problem: string | undefined;
  let tls: ConnectionOptions | undefined;
  let readMs = Number.NEGATIVE_INFINITY;

  function read(problems: string[]): void {
    const found = readRedisSecrets(settings, problems);
    if (found === undefined) return;
    const { ca, cert, key } = found;
    const changed = ca !== secrets.ca || cert !== secrets.cert || key !== secrets.key;
    if (url.tls && (tls === undefined || changed)) {
      // Without a servername, the certificate is checked against the host.
      const { serverName: servername } = settings;
      const secureContext = createSecureContext({ ca, cert, key });
      tls = { secureContext, ...(servername === undefined ? {} : { servername }) };
    }
    secrets = found;
  }

  function refresh(): void {
    if (performance.now() - readMs < FRESH_MS) return;
    const problems: string[] = [];
    try {
      read(problems);
    } catch (error) {
      problems.push(`SLUICE_REDIS_CA_FILE: ${(error as Error).message}`);
    }
    readMs = performance.now();
    const now = problems.length === 0 ? undefined : problems.join('; ');
    if (now !== undefined && now !== problem)
      log.warn({ detail: now }, 'failed to load Redis files, using the previous ones');
    problem = now;
  }

  function options(): AccessOptions {
    refresh();
    if (secrets === NOTHING) throw new Error(problem);
    const username = userOf(settings);
    const password = settings.passwordFile === undefined ? url.password : secrets.password;
    if (url.sentinel === undefined) return defined({ username, password, tls });
    const sentinelPassword = settings.sentinelPasswordFile === undefined ? password : secrets.sentinelPassword;
    const sentinelUsername =
      settings.sentinelUsername ?? (settings.sentinelPasswordFile === undefined ? username : undefined);
    return defined({ username, password, tls, sentinelUsername, sentinelPassword, sentinelTLS: tls });
  }

  return {
    options,
    keepFresh: target => {
      for (const name of NAMES) {
        Object.defineProperty(target, name, { get: () => options()[name], enumerable: true, configurable: true });
      }
    },
  };
}

function defined(options: { [K in keyof AccessOptions]: AccessOptions[K] | undefined }): AccessOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
