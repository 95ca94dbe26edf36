import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseRedisUrl } from './redis-url.ts';

/** How to reach Redis, each by the variable that sets it. Files are read again for each new connection. */
export interface RedisSettings {
  /** `SLUICE_REDIS_URL`. */
  readonly url: string;
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
}

/** What the files contain now. */
export interface RedisSecrets {
  readonly password: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** PEM. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Checks which settings go together, and adds what needs to change to `problems`. */
export function checkRedisSettings(settings: RedisSettings, problems: string[]): void {
  const { tls, username, password, sentinel } = parseRedisUrl(settings.url);
  if (password !== undefined && settings.passwordFile !== undefined) {
    problems.push('SLUICE_REDIS_PASSWORD_FILE: SLUICE_REDIS_URL has a password, too. Remove one of them');
  }
  if (username !== undefined && password === undefined && settings.passwordFile === undefined) {
    problems.push(
      'SLUICE_REDIS_URL: has a user without a password. Set SLUICE_REDIS_PASSWORD_FILE, or remove the user',
    );
  }
  if (settings.certFile !== undefined && settings.keyFile === undefined) {
    problems.push('SLUICE_REDIS_KEY_FILE: required, because SLUICE_REDIS_CERT_FILE is set');
  }
  if (settings.keyFile !== undefined && settings.certFile === undefined) {
    problems.push('SLUICE_REDIS_CERT_FILE: required, because SLUICE_REDIS_KEY_FILE is set');
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
    problems.push(`${name}: requires TLS. Change SLUICE_REDIS_URL to ${scheme}, or remove this variable`);
  }
  const onlySentinel = {
    SLUICE_REDIS_SENTINEL_USERNAME: settings.sentinelUsername,
    SLUICE_REDIS_SENTINEL_PASSWORD_FILE: settings.sentinelPasswordFile,
  };
  for (const [name, value] of Object.entries(onlySentinel)) {
    if (sentinel !== undefined || value === undefined) continue;
    problems.push(`${name}: requires Sentinel. Change SLUICE_REDIS_URL to redis+sentinel://, or remove this variable`);
  }
}

/**
 * Reads the files. Returns undefined and adds what needs to change to `problems` if one of them cannot be used. Of a
 * password only the line break at its end is removed.
 */
export function readRedisSecrets(settings: RedisSettings, problems: string[]): RedisSecrets | undefined {
  const found: string[] = [];
  const password = readPassword('SLUICE_REDIS_PASSWORD_FILE', settings.passwordFile, found);
  const sentinelPassword = readPassword('SLUICE_REDIS_SENTINEL_PASSWORD_FILE', settings.sentinelPasswordFile, found);
  const ca = readCertificates('SLUICE_REDIS_CA_FILE', settings.caFile, found);
  const cert = readCertificates('SLUICE_REDIS_CERT_FILE', settings.certFile, found);
  const key = readFile('SLUICE_REDIS_KEY_FILE', settings.keyFile, found);
  if (key !== undefined) checkKey(key, cert, settings, found);
  problems.push(...found);
  return found.length > 0 ? undefined : { password, sentinelPassword, ca, cert, key };
}

function readFile(variable: string, file: string | undefined, problems: string[]): string | undefined {
  if (file === undefined) return undefined;
  try {
    const text = readFileSync(file, 'utf8');
    if (text.trim() !== '') return text;
    problems.push(`${variable}: ${file} is empty`);
  } catch (error) {
    problems.push(`${variable}: ${(error as NodeJS.ErrnoException).code ?? 'cannot read the file'}: ${file}`);
  }
  return undefined;
}

function readPassword(variable: string, file: string | undefined, problems: string[]): string | undefined {
  return readFile(variable, file, problems)?.replace(/[\r\n]+$/, '');
}

function readCertificates(variable: string, file: string | undefined, problems: string[]): string | undefined {
  const text = readFile(variable, file, problems);
  if (text === undefined) return undefined;
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length > 0 && blocks.every(isCertificate)) return text;
  problems.push(`${variable}: ${file} must contain certificates in PEM format (-----BEGIN CERTIFICATE-----)`);
  return undefined;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).serialNumber !== '';
  } catch {
    return false;
  }
}

function checkKey(key: string, cert: string | undefined, settings: RedisSettings, problems: string[]): void {
  try {
    const privateKey = createPrivateKey(key);
    if (cert === undefined || new X509Certificate(cert).checkPrivateKey(privateKey)) return;
    problems.push(
      `SLUICE_REDIS_KEY_FILE: ${settings.keyFile} is not the key of the first certificate in ${settings.certFile}`,
    );
  } catch {
    problems.push(
      `SLUICE_REDIS_KEY_FILE: ${settings.keyFile} must contain a private key in PEM format, not encrypted (-----BEGIN PRIVATE KEY-----)`,
    );
  }
}
