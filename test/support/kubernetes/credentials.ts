import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';

export type User = { readonly name: string; readonly groups: readonly string[] };

/** A user and its bearer token for the API server. */
export type Credential = User & { readonly token: string };

export const ADMIN: User = { name: 'admin', groups: ['system:masters'] };

export function issueToken(user: User): Credential {
  return { ...user, token: randomBytes(24).toString('base64url') };
}

export function isSameUser(a: User, b: User): boolean {
  return a.name === b.name && a.groups.join() === b.groups.join();
}

/** The lines of `--token-auth-file`: token, name, uid, and the groups as a single quoted column. */
export function formatTokenFile(credentials: readonly Credential[]): string {
  return credentials.map(({ token, name, groups }) => `${token},${name},${name},"${groups.join(',')}"\n`).join('');
}

/** Returns a kubeconfig with one cluster, one user, and one context, all named `sluice`, as JSON. */
export function formatKubeconfig(parts: {
  readonly cluster: { readonly server: string; readonly [field: string]: unknown };
  readonly user?: object;
  readonly context?: object;
}): string {
  const { cluster, user = {}, context = {} } = parts;
  const name = 'sluice';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...context } }],
  });
}

/** Writes the key pair for signing and verifying service account tokens, as PEM. */
export async function writeServiceAccountKeys(paths: { privateKey: string; publicKey: string }): Promise<void> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  await writeFile(paths.privateKey, privateKey, { mode: 0o600 });
  await writeFile(paths.publicKey, publicKey);
}
