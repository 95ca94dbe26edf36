import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createAuthority } from '../../test/support/certificates.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { ConfigError, readConfig } from './config.ts';

const folder = await temporaryFolder('tls-environment');
afterAll(folder.remove);
const authority = await createAuthority(folder.path);
const own = await authority.issue('own', 'DNS:events.example');
const other = await authority.issue('other');
const rootKey = join(folder.path, 'root.key');
writeFileSync(rootKey, randomBytes(32));
const cutOff = join(folder.path, 'cut-off.crt');
writeFileSync(cutOff, readFileSync(own.cert, 'utf8') + readFileSync(other.cert, 'utf8').slice(0, 300));

function problemOf(env: Record<string, string>, role = 'ingress'): string {
  try {
    readConfig([role], env);
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
}

test('reads the certificate of a role', () => {
  const { ingressCertificate, facadeCertificate } = readConfig(['ingress'], {
    SLUICE_INGRESS_CERT_FILE: own.cert,
    SLUICE_INGRESS_KEY_FILE: own.key,
  });
  expect(ingressCertificate?.first.cert).toContain('BEGIN CERTIFICATE');
  expect(ingressCertificate?.first.key).toContain('PRIVATE KEY');
  expect(facadeCertificate).toBeUndefined();
});

test.each([
  [
    { SLUICE_INGRESS_CERT_FILE: own.cert },
    'SLUICE_INGRESS_KEY_FILE: required, because SLUICE_INGRESS_CERT_FILE is set',
  ],
  [{ SLUICE_INGRESS_KEY_FILE: own.key }, 'SLUICE_INGRESS_CERT_FILE: required, because SLUICE_INGRESS_KEY_FILE is set'],
  [
    { SLUICE_INGRESS_CERT_FILE: own.cert, SLUICE_INGRESS_KEY_FILE: other.key },
    `SLUICE_INGRESS_KEY_FILE: ${other.key} is not the key of the first certificate in ${own.cert}`,
  ],
  [
    { SLUICE_INGRESS_CERT_FILE: join(folder.path, 'missing'), SLUICE_INGRESS_KEY_FILE: own.key },
    `SLUICE_INGRESS_CERT_FILE: ENOENT: ${join(folder.path, 'missing')}`,
  ],
  [
    { SLUICE_INGRESS_CERT_FILE: cutOff, SLUICE_INGRESS_KEY_FILE: own.key },
    `SLUICE_INGRESS_CERT_FILE: cannot be used for TLS: error:04800066:PEM routines::bad end line: ${cutOff}`,
  ],
])('refuses invalid files: %j', (env, message) => {
  expect(problemOf(env)).toBe(message);
});

test('a role does not read the certificate of another role', () => {
  const missing = join(folder.path, 'missing');
  expect(problemOf({ SLUICE_FACADE_CERT_FILE: missing, SLUICE_FACADE_KEY_FILE: missing })).toBe('');
});
