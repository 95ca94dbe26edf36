import { checkKey, readCertificates, readText, whyUnusable } from '../../tls/pem-files.ts';
import { parseRedisUrl } from './redis-url.ts';

/**
 * The settings for connecting to Redis, with the variable for each of them. The files are read again whenever a
 * connection is opened.
 */
export interface RedisSettings {
  /** `SLUICE_REDIS_URL`. */
  readonly url: string;
  /** `SLUICE_REDIS_USERNAME`. */
  readonly username?: string | undefined;
  /** `SLUICE_REDIS_PASSWORD_FILE`. */
  readonly passwordFile?: string | undefined;
  /** `SLUICE_REDIS_SENTINEL_USERNAME`. */
  readonly sentinelUsername?: string | undefined;
  /** `SLUICE_REDIS_SENTINEL_PASSWORD_FILE`. */
  readonly sentinelPasswordFile?: string | undefined;
  /** `SLUICE_REDIS_CA_FILE`. */
  readonly caFile?: string | undefined;
  /** `SLUICE_REDIS_CERT_FILE`. */
  readonly certFile?: string | undefined;
  /** `SLUICE_REDIS_KEY_FILE`. */
  readonly keyFile?: string | undefined;
  /** `SLUICE_REDIS_SERVER_NAME`. */
  readonly serverName?: string | undefined;
  /** `SLUICE_REDIS_WAIT_REPLICAS`. Defaults to 0. */
  readonly waitReplicas?: number | undefined;
}

/** Returns the Redis user, or undefined for the default user. */
export function userOf(settings: Pick<RedisSettings, 'url' | 'username'>): string | undefined {
  return settings.username ?? parseRedisUrl(settings.url).username;
}

/** The current content of the files. */
export interface RedisSecrets {
  readonly password: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** PEM. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Checks whether the settings can be used together. If they can't, adds the required changes to `problems`. */
export function checkRedisSettings(settings: RedisSettings, problems: string[]): void {
  const { tls, username, password, sentinel } = parseRedisUrl(settings.url);
  if (username !== undefined && settings.username !== undefined) {
    problems.push('SLUICE_REDIS_USERNAME: SLUICE_REDIS_URL already contains a user. Remove one of them');
  }
  if (password !== undefined && settings.passwordFile !== undefined) {
    problems.push('SLUICE_REDIS_PASSWORD_FILE: SLUICE_REDIS_URL already contains a password. Remove one of them');
  }
  const userVariable = settings.username === undefined ? 'SLUICE_REDIS_URL' : 'SLUICE_REDIS_USERNAME';
  if (userOf(settings) !== undefined && password === undefined && settings.passwordFile === undefined) {
    problems.push(
      `${userVariable}: specifies a user without a password. Set SLUICE_REDIS_PASSWORD_FILE or remove the user`,
    );
  }
  if (settings.certFile !== undefined && settings.keyFile === undefined) {
    problems.push('SLUICE_REDIS_KEY_FILE: required because SLUICE_REDIS_CERT_FILE is set');
  }
  if (settings.keyFile !== undefined && settings.certFile === undefined) {
    problems.push('SLUICE_REDIS_CERT_FILE: required because SLUICE_REDIS_KEY_FILE is set');
  }
  const onlyTls = {
    SLUICE_REDIS_CA_FILE: settings.caFile,
    SLUICE_REDIS_CERT_FILE: settings.certFile,
    SLUICE_REDIS_KEY_FILE: settings.keyFile,
    SLUICE_REDIS_SERVER_NAME: settings.serverName,
  };
  for (const [name, value] of Object.entries(onlyTls)) {
    if (tls || value === undefined) continue;
    const scheme = sentinel === undefined ? 'rediss://' : 'rediss+sentinel://';
    problems.push(`${name}: requires TLS. Change SLUICE_REDIS_URL to ${scheme} or remove this variable`);
  }
  const onlySentinel = {
    SLUICE_REDIS_SENTINEL_USERNAME: settings.sentinelUsername,
    SLUICE_REDIS_SENTINEL_PASSWORD_FILE: settings.sentinelPasswordFile,
  };
  for (const [name, value] of Object.entries(onlySentinel)) {
    if (sentinel !== undefined || value === undefined) continue;
    problems.push(`${name}: requires Sentinel. Change SLUICE_REDIS_URL to redis+sentinel:// or remove this variable`);
  }
}

/**
 * Reads the content of the files. Returns undefined if one of the files is not valid and adds the required changes to
 * `problems`. Only the trailing line break of a password is removed.
 */
export function readRedisSecrets(settings: RedisSettings, problems: string[]): RedisSecrets | undefined {
  const found: string[] = [];
  const password = readPassword('SLUICE_REDIS_PASSWORD_FILE', settings.passwordFile, found);
  const sentinelPassword = readPassword('SLUICE_REDIS_SENTINEL_PASSWORD_FILE', settings.sentinelPasswordFile, found);
  const ca = readCertificates({ variable: 'SLUICE_REDIS_CA_FILE', path: settings.caFile }, found);
  const files = {
    certificates: { variable: 'SLUICE_REDIS_CERT_FILE', path: settings.certFile },
    key: { variable: 'SLUICE_REDIS_KEY_FILE', path: settings.keyFile },
  };
  const cert = readCertificates(files.certificates, found);
  const key = readText(files.key, found);
  if (key !== undefined) checkKey(key, cert, files, found);
  if (found.length === 0 && cert !== undefined && key !== undefined) {
    const problem = whyUnusable({ cert, key });
    if (problem !== undefined) {
      found.push(`SLUICE_REDIS_CERT_FILE: cannot be used for TLS: ${problem}: ${settings.certFile}`);
    }
  }
  problems.push(...found);
  return found.length > 0 ? undefined : { password, sentinelPassword, ca, cert, key };
}

function readPassword(variable: string, path: string | undefined, problems: string[]): string | undefined {
  return readText({ variable, path }, problems)?.replace(/[\r\n]+$/, '');
}
