import type { Impairment } from '../../telemetry/role-health.ts';
import { type RedisSettings, userOf } from './redis-settings.ts';
import { parseRedisUrl, withoutPasswords } from './redis-url.ts';

/** The errors that Redis returns if the user is not allowed to use a command. In a script, the error is different. */
const LACKS_RIGHT = /\bNOPERM\b|\bThe user executing the script can't\b/;
/** Errors returned by Redis for an unknown user, or if the user or the password is not accepted. */
const DENIED = new RegExp(String.raw`\b(?:WRONGPASS|NOAUTH)\b|${LACKS_RIGHT.source}`);

/** The required change for errors containing these words or codes. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'Use a host name that is included in its certificate or set SLUICE_REDIS_SERVER_NAME to one of the included names',
  ],
  [/CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/, 'Renew its certificate'],
  [
    /SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED|INVALID_CA/,
    'Set SLUICE_REDIS_CA_FILE to the certificate of the authority that signed its certificate',
  ],
  [
    /ALERT_CERTIFICATE_REQUIRED|ALERT_UNKNOWN_CA|ALERT_BAD_CERTIFICATE|ALERT_CERTIFICATE_(?:EXPIRED|UNKNOWN|REVOKED)|HANDSHAKE_FAILURE/,
    'The client certificate was rejected: check SLUICE_REDIS_CERT_FILE and SLUICE_REDIS_KEY_FILE',
  ],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/, 'TLS is not enabled on this port: check SLUICE_REDIS_URL'],
  [/ETIMEDOUT/, 'Check the address, the firewall, and NetworkPolicies. With rediss://, the port must use TLS'],
  [
    /ECONNRESET|EPIPE/,
    'If the server is running, check its maxclients. If the port requires TLS, set SLUICE_REDIS_URL to rediss://',
  ],
  [/No_such_master|invalid_reply:_null/, 'Correct the master name in SLUICE_REDIS_URL'],
  [/DB_index_is_out_of_range/, 'Correct the database in SLUICE_REDIS_URL'],
];

/**
 * Returns true if Redis, a node of a Cluster, or a Sentinel has responded but does not accept the user or the password.
 */
export function isDenied(error: Error | undefined): boolean {
  return error !== undefined && DENIED.test(causeOf(error).message);
}

/** Returns the Redis address and its variable, as used in messages. */
export function placeOf({ url, username }: RedisSettings): string {
  return `${withoutPasswords(url, username)} (SLUICE_REDIS_URL)`;
}

/**
 * Describes why Redis is unusable, including the variable to change.
 *
 * @param error error of the last connection attempt, if known
 * @param fileProblem why a file of the settings could not be read
 */
export function redisImpairment(
  settings: RedisSettings,
  place: string,
  error: Error | undefined,
  fileProblem: string | undefined,
): Impairment {
  const also = fileProblem === undefined ? '' : ` ${fileProblem}.`;
  if (error === undefined) {
    const message = `Redis at ${place} does not answer any more.${also}`;
    return { reason: 'RedisUnavailable', cause: 'dependency', message };
  }
  if (error.message === fileProblem) {
    const message = `Redis at ${place} cannot be used: ${fileProblem}.`;
    return { reason: 'RedisUnavailable', cause: 'dependency', message };
  }
  const { code, message: text } = causeOf(error) as NodeJS.ErrnoException;
  // A connection is closed if there has been no response to its commands for a longer time.
  const message = text.startsWith('Socket timeout') ? 'Command timed out' : text;
  if (isDenied(error)) {
    const denied = `Redis at ${place} denies access: ${message.replace(/\.$/, '')}. ${remedyOf(settings, message)}.${also}`;
    return { reason: 'RedisAccessDenied', cause: 'dependency', message: denied };
  }
  const advice = ADVICE.find(([pattern]) => pattern.test(`${code ?? ''} ${message}`.replaceAll(' ', '_')))?.[1];
  const problem = `Redis at ${place} does not answer: ${message}`;
  const whole =
    advice === undefined && also === '' ? problem : `${problem}.${advice === undefined ? '' : ` ${advice}.`}${also}`;
  return { reason: 'RedisUnavailable', cause: 'dependency', message: whole };
}

/** The required change for a server that does not accept writes. */
const TO_WRITE: readonly (readonly [RegExp, string])[] = [
  [/^READONLY/, 'It is a replica: set SLUICE_REDIS_URL to the address of the master'],
  [/^NOREPLICAS/, 'Repair or add replicas, or change min-replicas-to-write'],
];

/** Describes why Redis does not accept writes. */
export function writesRejected(place: string, { message }: Error): Impairment {
  const advice = TO_WRITE.find(([pattern]) => pattern.test(message))?.[1];
  const problem = `Redis at ${place} rejects writes: ${message.replace(/\.$/, '')}.`;
  return {
    reason: 'RedisUnavailable',
    cause: 'dependency',
    message: advice === undefined ? problem : `${problem} ${advice}.`,
  };
}

/** If the given error only states that all nodes have failed, returns the error of a node. */
function causeOf(error: Error): Error {
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return lastNodeError instanceof Error ? lastNodeError : error;
}

function remedyOf(settings: RedisSettings, message: string): string {
  const { password } = parseRedisUrl(settings.url);
  const ofSentinel = /\bsentinels?\b/i.test(message) && settings.sentinelPasswordFile !== undefined;
  if (LACKS_RIGHT.test(message)) {
    const user = userOf(settings) ?? 'default';
    return `Give user ${user} the permissions in config/redis/users.acl of this version. ACL LOG shows the denied command or key`;
  }
  if (ofSentinel)
    return `Correct the password in SLUICE_REDIS_SENTINEL_PASSWORD_FILE (${settings.sentinelPasswordFile})`;
  if (settings.passwordFile !== undefined) {
    return `Correct the password in SLUICE_REDIS_PASSWORD_FILE (${settings.passwordFile})`;
  }
  return password === undefined
    ? 'Set SLUICE_REDIS_PASSWORD_FILE to a file with its password'
    : 'Correct the password in SLUICE_REDIS_URL';
}
