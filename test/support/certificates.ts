import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A certificate and its key, as the paths of PEM files. */
export type CertificateFiles = { readonly cert: string; readonly key: string };

export type Authority = {
  /** The path of its certificate (PEM). */
  readonly ca: string;
  /** Issues a certificate for these names, such as `DNS:localhost` and `IP:127.0.0.1`. */
  readonly issue: (name: string, ...names: readonly string[]) => Promise<CertificateFiles>;
  /** Issues a certificate that expired yesterday. */
  readonly issueExpired: (name: string, ...names: readonly string[]) => Promise<CertificateFiles>;
};

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];

/** Writes a self-signed certificate for these names, with openssl. */
export async function writeSelfSigned(files: CertificateFiles, name: string, ...names: string[]): Promise<void> {
  const extension = names.length === 0 ? [] : ['-addext', `subjectAltName=${names.join(',')}`];
  const subject = ['-subj', `/CN=${name}`, ...extension];
  await run('openssl', ['req', '-x509', ...NEW_KEY, ...subject, '-keyout', files.key, '-out', files.cert]);
}

/** Creates a certificate authority in a folder, with openssl. */
export async function createAuthority(folder: string, name = 'ca'): Promise<Authority> {
  const ca = join(folder, `${name}.crt`);
  const caKey = join(folder, `${name}.key`);
  await writeSelfSigned({ cert: ca, key: caKey }, name);
  const issueFor = async (days: string, leaf: string, names: readonly string[]) => {
    const files = { cert: join(folder, `${leaf}.crt`), key: join(folder, `${leaf}.key`) };
    const extensions = join(folder, `${leaf}.ext`);
    await writeFile(extensions, names.length === 0 ? '' : `subjectAltName=${names.join(',')}\n`);
    const signing = ['-CA', ca, '-CAkey', caKey, '-extfile', extensions, '-out', files.cert];
    const request = join(folder, `${leaf}.csr`);
    await run('openssl', ['req', ...NEW_KEY, '-subj', `/CN=${leaf}`, '-keyout', files.key, '-out', request]);
    await run('openssl', ['x509', '-req', '-in', request, '-days', days, '-CAcreateserial', ...signing]);
    return files;
  };
  return {
    ca,
    issue: (leaf, ...names) => issueFor('2', leaf, names),
    issueExpired: (leaf, ...names) => issueFor('-1', leaf, names),
  };
}

/**
 * Returns arguments of redis-server for an additional port with TLS, which is also used for replication and Sentinels.
 */
export function tlsArguments(port: number, ca: string, server: CertificateFiles, clients: 'yes' | 'no'): string[] {
  const files = { 'tls-ca-cert-file': ca, 'tls-cert-file': server.cert, 'tls-key-file': server.key };
  const settings = { 'tls-port': `${port}`, ...files, 'tls-auth-clients': clients, 'tls-replication': 'yes' };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}
