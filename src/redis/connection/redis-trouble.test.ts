import { expect, test } from 'vitest';
import type { RedisSettings } from './redis-settings.ts';
import { isDenied, redisImpairment } from './redis-trouble.ts';

const WRONG = new Error('WRONGPASS invalid username-password pair or user is disabled.');

function say(settings: Partial<RedisSettings>, error: Error | undefined, fileProblem?: string) {
  const { reason, message } = redisImpairment({ url: 'redis://a', ...settings }, 'redis://a', error, fileProblem);
  return `${reason}: ${message}`;
}

test.each([
  [
    { passwordFile: '/p' },
    WRONG,
    /^RedisAccessDenied: .*WRONGPASS.*Correct the password in SLUICE_REDIS_PASSWORD_FILE \(\/p\)\.$/,
  ],
  [{ url: 'redis://:x@a' }, WRONG, /^RedisAccessDenied: .*Correct the password in SLUICE_REDIS_URL\.$/],
  [{}, new Error('NOAUTH HELLO must be called'), /^RedisAccessDenied: .*Set SLUICE_REDIS_PASSWORD_FILE/],
  [
    { url: 'redis://sluice-ingress:x@a' },
    new Error("NOPERM this user has no permissions to run the 'hget' command"),
    /^RedisAccessDenied: .*'hget'.*Give user sluice-ingress the permissions in config\/redis\/users\.acl of this version\. ACL LOG/,
  ],
  [
    { username: 'sluice-facade', passwordFile: '/p' },
    new Error("ERR The user executing the script can't access at least one of the keys"),
    /^RedisAccessDenied: .*Give user sluice-facade the permissions/,
  ],
  [{}, new Error('NOPERM this user has no permissions'), /^RedisAccessDenied: .*Give user default the permissions/],
  [
    { passwordFile: '/p', sentinelPasswordFile: '/s' },
    new Error('failed to connect to sentinel a:1 because WRONGPASS invalid'),
    /^RedisAccessDenied: .*SLUICE_REDIS_SENTINEL_PASSWORD_FILE \(\/s\)\.$/,
  ],
  [{}, undefined, /^RedisUnavailable: Redis at redis:\/\/a does not answer any more\.$/],
  [
    {},
    new Error('connect ECONNREFUSED'),
    /^RedisUnavailable: Redis at redis:\/\/a does not answer: connect ECONNREFUSED$/,
  ],
  [{}, coded('ETIMEDOUT'), /^RedisUnavailable: .*NetworkPolicies\. With rediss:\/\/, the port must use TLS/],
  [{}, new Error('write EPIPE'), /^RedisUnavailable: .*maxclients\. If the port requires TLS/],
  [{}, coded('ERR_TLS_CERT_ALTNAME_INVALID'), /^RedisUnavailable: .*SLUICE_REDIS_SERVER_NAME/],
  [{}, coded('SELF_SIGNED_CERT_IN_CHAIN'), /^RedisUnavailable: .*SLUICE_REDIS_CA_FILE/],
  [{}, coded('CERT_HAS_EXPIRED'), /^RedisUnavailable: .*Renew its certificate/],
  [{}, coded('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), /^RedisUnavailable: .*SLUICE_REDIS_CERT_FILE/],
  [{}, coded('ERR_SSL_WRONG_VERSION_NUMBER'), /^RedisUnavailable: .*TLS is not enabled/],
])('%j: %s', (settings, error, expected) => {
  expect(say(settings, error)).toMatch(expected);
});

test('reports the file that cannot be read', () => {
  expect(say({}, WRONG, 'SLUICE_REDIS_PASSWORD_FILE: ENOENT: /p')).toContain('SLUICE_REDIS_PASSWORD_FILE: ENOENT: /p.');
});

test('uses the error of a node of a Cluster', () => {
  const all = Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError: WRONG });
  expect(isDenied(all)).toBe(true);
  expect(say({ passwordFile: '/p' }, all)).toContain('WRONGPASS');
  expect(isDenied(new Error('connect ECONNREFUSED'))).toBe(false);
});

function coded(code: string): Error {
  return Object.assign(new Error('the handshake failed'), { code });
}
