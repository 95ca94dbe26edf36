import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

/** A file whose path is given by an environment variable. */
export interface NamedFile {
  readonly variable: string;
  readonly path: string | undefined;
}

/**
 * Reads a file. The file must not be empty. Returns undefined if the file can't be used and adds the reason to
 * `problems`.
 */
export function readText({ variable, path }: NamedFile, problems: string[]): string | undefined {
  if (path === undefined) return undefined;
  try {
    const text = readFileSync(path, 'utf8');
    if (text.trim() !== '') return text;
    problems.push(`${variable}: ${path} is empty`);
  } catch (error) {
    problems.push(`${variable}: ${(error as NodeJS.ErrnoException).code ?? 'cannot read the file'}: ${path}`);
  }
  return undefined;
}

/** Reads a PEM file that contains one or more certificates. In all other respects, this is the same as `readText`. */
export function readCertificates(file: NamedFile, problems: string[]): string | undefined {
  const text = readText(file, problems);
  if (text === undefined) return undefined;
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length > 0 && blocks.every(isCertificate)) return text;
  problems.push(`${file.variable}: ${file.path} must contain certificates in PEM format (-----BEGIN CERTIFICATE-----)`);
  return undefined;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).serialNumber !== '';
  } catch {
    return false;
  }
}

/**
 * Checks if a key in PEM format belongs to the first certificate (if there is one). If it doesn't, an error is added to
 * `problems`.
 */
export function checkKey(
  key: string,
  certificates: string | undefined,
  files: { readonly key: NamedFile; readonly certificates: NamedFile },
  problems: string[],
): void {
  const { variable, path } = files.key;
  try {
    const privateKey = createPrivateKey(key);
    if (certificates === undefined || new X509Certificate(certificates).checkPrivateKey(privateKey)) return;
    problems.push(`${variable}: ${path} is not the key of the first certificate in ${files.certificates.path}`);
  } catch {
    problems.push(
      `${variable}: ${path} must contain a private key in PEM format, not encrypted (-----BEGIN PRIVATE KEY-----)`,
    );
  }
}

/**
 * Returns the reason why OpenSSL does not accept the certificate, for example because the key is too short. Undefined
 * if it is accepted.
 */
export function whyUnusable(certificate: { readonly cert: string; readonly key: string }): string | undefined {
  try {
    createSecureContext(certificate);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns the time at which the first certificate in PEM format will expire, in milliseconds since 1970. */
export function endOf(certificates: string): number {
  return Date.parse(new X509Certificate(certificates).validTo);
}
