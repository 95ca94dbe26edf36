import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../../test/support/certificates.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { readConfig } from './config.ts';

const folder = await temporaryFolder('redis-environment');
afterAll(folder.remove);
const authority = await createAuthority(folder.path);
const [client, other] = [await authority.issue('client'), await authority.issue('other')];

function file(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

const password = file('password', 'secret\n');
const empty = file('empty', ' \n');
const garbage = file('garbage', '-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n');
const missing = join(folder.path, 'missing');
const short = { cert: join(folder.path, 'short.crt'), key: join(folder.path, 'short.key') };
const SHORT = ['-newkey', 'rsa:1024', '-nodes', '-subj', '/CN=short', '-keyout', short.key, '-out', short.cert];
execFileSync('openssl', ['req', '-x509', ...SHORT], { stdio: 'ignore' });

const TLS = { SLUICE_REDIS_URL: 'rediss://a' };
const CLIENT = { SLUICE_REDIS_CERT_FILE: client.cert, SLUICE_REDIS_KEY_FILE: client.key };
const SENTINEL = { SLUICE_REDIS_URL: 'redis+sentinel://a/main' };

describe('the settings of Redis', () => {
  test('are read', () => {
    const env = {
      SLUICE_REDIS_URL: 'rediss+sentinel://user@a,b/main',
      SLUICE_REDIS_PASSWORD_FILE: password,
      SLUICE_REDIS_CA_FILE: authority.ca,
      ...CLIENT,
      SLUICE_REDIS_SERVER_NAME: 'redis.example',
      SLUICE_REDIS_SENTINEL_USERNAME: 'watcher',
      SLUICE_REDIS_SENTINEL_PASSWORD_FILE: password,
      SLUICE_REDIS_WAIT_REPLICAS: '1',
    };
    expect(readConfig(['ingress'], env).redis).toEqual({
      url: 'rediss+sentinel://user@a,b/main',
      passwordFile: password,
      caFile: authority.ca,
      certFile: client.cert,
      keyFile: client.key,
      serverName: 'redis.example',
      sentinelUsername: 'watcher',
      sentinelPasswordFile: password,
      waitReplicas: 1,
    });
  });

  test('can set the user outside of the URL', () => {
    const env = { SLUICE_REDIS_URL: 'redis://a', SLUICE_REDIS_USERNAME: 'me', SLUICE_REDIS_PASSWORD_FILE: password };
    expect(readConfig(['ingress'], env).redis).toMatchObject({ url: 'redis://a', username: 'me' });
  });

  test.each([
    [{ SLUICE_REDIS_URL: 'redis+sentinel://a:1,b:2' }, 'SLUICE_REDIS_URL: does not contain a master name.'],
    [
      { SLUICE_REDIS_URL: 'redis://:x@a', SLUICE_REDIS_PASSWORD_FILE: password },
      'SLUICE_REDIS_PASSWORD_FILE: SLUICE_REDIS_URL already contains a password. Remove one of them',
    ],
    [{ SLUICE_REDIS_URL: 'redis://user@a' }, 'SLUICE_REDIS_URL: specifies a user without a password'],
    [{ SLUICE_REDIS_USERNAME: 'user' }, 'SLUICE_REDIS_USERNAME: specifies a user without a password'],
    [
      {
        SLUICE_REDIS_URL: 'redis://user@a',
        SLUICE_REDIS_USERNAME: 'sluice-ingress',
        SLUICE_REDIS_PASSWORD_FILE: password,
      },
      'SLUICE_REDIS_USERNAME: SLUICE_REDIS_URL already contains a user. Remove one of them',
    ],
    [{ SLUICE_REDIS_PASSWORD_FILE: missing }, `SLUICE_REDIS_PASSWORD_FILE: ENOENT: ${missing}`],
    [{ SLUICE_REDIS_PASSWORD_FILE: empty }, `SLUICE_REDIS_PASSWORD_FILE: ${empty} is empty`],
    [{ ...TLS, SLUICE_REDIS_CERT_FILE: client.cert }, 'SLUICE_REDIS_KEY_FILE: required'],
    [{ ...TLS, SLUICE_REDIS_KEY_FILE: client.key }, 'SLUICE_REDIS_CERT_FILE: required'],
    [{ ...TLS, SLUICE_REDIS_CA_FILE: missing }, 'SLUICE_REDIS_CA_FILE: ENOENT'],
    [{ ...TLS, SLUICE_REDIS_CA_FILE: empty }, `SLUICE_REDIS_CA_FILE: ${empty} is empty`],
    [{ ...TLS, SLUICE_REDIS_CA_FILE: client.key }, 'SLUICE_REDIS_CA_FILE: '],
    [{ ...TLS, SLUICE_REDIS_CA_FILE: garbage }, 'must contain certificates in PEM format'],
    [{ ...TLS, ...CLIENT, SLUICE_REDIS_CERT_FILE: garbage }, 'SLUICE_REDIS_CERT_FILE: '],
    [{ ...TLS, ...CLIENT, SLUICE_REDIS_KEY_FILE: garbage }, 'SLUICE_REDIS_KEY_FILE: '],
    [{ ...TLS, ...CLIENT, SLUICE_REDIS_KEY_FILE: other.key }, 'is not the key of the first certificate in'],
    [
      { ...TLS, SLUICE_REDIS_CERT_FILE: short.cert, SLUICE_REDIS_KEY_FILE: short.key },
      /^SLUICE_REDIS_CERT_FILE: cannot be used for TLS: .*key too small: .*short\.crt$/,
    ],
    [
      { SLUICE_REDIS_CA_FILE: authority.ca },
      'SLUICE_REDIS_CA_FILE: requires TLS. Change SLUICE_REDIS_URL to rediss://',
    ],
    [{ ...SENTINEL, SLUICE_REDIS_SERVER_NAME: 'a' }, 'Change SLUICE_REDIS_URL to rediss+sentinel://'],
    [{ ...TLS, SLUICE_REDIS_SERVER_NAME: 'a b' }, 'SLUICE_REDIS_SERVER_NAME: must be a DNS name'],
    [{ SLUICE_REDIS_SENTINEL_PASSWORD_FILE: password }, 'SLUICE_REDIS_SENTINEL_PASSWORD_FILE: requires Sentinel.'],
    [{ SLUICE_REDIS_SENTINEL_USERNAME: 'u' }, 'SLUICE_REDIS_SENTINEL_USERNAME: requires Sentinel.'],
    [{ ...SENTINEL, SLUICE_REDIS_SENTINEL_PASSWORD_FILE: missing }, 'SLUICE_REDIS_SENTINEL_PASSWORD_FILE: ENOENT'],
  ])('refuses %j', (env, message) => {
    expect(() => readConfig(['ingress'], env)).toThrow(expect.objectContaining({ name: 'ConfigError' }));
    expect(() => readConfig(['ingress'], env)).toThrow(message);
  });

  test('do not print a password', () => {
    const env = { SLUICE_REDIS_URL: 'redis://:topsecret@a', SLUICE_REDIS_PASSWORD_FILE: missing };
    expect(() => readConfig(['ingress'], env)).toThrow(/^(?!.*topsecret)/s);
  });
});
