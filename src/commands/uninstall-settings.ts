import { ConfigError, readVariables } from '../config/config.ts';
import { ENVIRONMENT } from '../config/environment.ts';
import { REDIS_ENVIRONMENT, readRedis } from '../config/redis-environment.ts';
import type { RedisSettings } from '../redis/connection/redis-settings.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** The settings of `sluice uninstall`. */
export interface UninstallSettings {
  readonly instance: string;
  /** `SLUICE_NAMESPACE`. */
  readonly namespace: string | undefined;
  /** The value of `SLUICE_SECRETS_ROLE`. Also the name of the RoleBindings. */
  readonly secretsRole: string | undefined;
  /** Undefined if Redis can't be used. In this case, `redisProblems` contains the reason. */
  readonly redis: RedisSettings | undefined;
  readonly redisProblems: readonly string[];
}

const OWN = ['SLUICE_INSTANCE', 'SLUICE_NAMESPACE', 'SLUICE_SECRETS_ROLE'];

/**
 * Reads the variables used by the command. Other settings of Sluice may be invalid, which may be the reason for
 * uninstalling it. Redis may already have been removed, along with its Secrets.
 *
 * @throws ConfigError if a variable is unknown, since it could be a misspelled name of the installation
 */
export function readUninstallSettings(env: Env): UninstallSettings {
  const only = (isNeeded: (name: string) => boolean): Env =>
    Object.fromEntries(Object.entries(env).filter(([name]) => isNeeded(name)));
  const problems: string[] = [];
  const data = readVariables(
    only(name => OWN.includes(name) || !(name in ENVIRONMENT)),
    problems,
  );
  if (data === undefined || problems.length > 0) throw new ConfigError(problems.join('\n'));
  const redisProblems: string[] = [];
  const redisData = readVariables(
    only(name => name in REDIS_ENVIRONMENT),
    redisProblems,
  );
  const redis = redisData && readRedis(redisData, redisProblems);
  return {
    instance: data.SLUICE_INSTANCE,
    namespace: data.SLUICE_NAMESPACE,
    secretsRole: data.SLUICE_SECRETS_ROLE,
    redis: redisProblems.length === 0 ? redis : undefined,
    redisProblems,
  };
}
