import { X509Certificate } from 'node:crypto';
import type { Logger } from '../telemetry/log.ts';
import { checkKey, type NamedFile, readCertificates, readText, whyUnusable } from './pem-files.ts';

/** A certificate (which can be followed by intermediate certificates) and its key, in PEM format. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The files of the server certificate, and their content when the process was started. */
export interface ServedCertificate {
  readonly files: { readonly certificates: NamedFile; readonly key: NamedFile };
  readonly first: Certificate;
}

/** Reads both files. Returns undefined if they can't be used and adds the required change to `problems`. */
export function readCertificate(files: ServedCertificate['files'], problems: string[]): Certificate | undefined {
  const found: string[] = [];
  const cert = readCertificates(files.certificates, found);
  const key = readText(files.key, found);
  if (key !== undefined) checkKey(key, cert, files, found);
  if (found.length === 0 && cert !== undefined && key !== undefined) {
    const problem = whyUnusable({ cert, key });
    if (problem === undefined) return { cert, key };
    found.push(`${files.certificates.variable}: cannot be used for TLS: ${problem}: ${files.certificates.path}`);
  }
  problems.push(...found);
  return undefined;
}

/** Returns the reason why clients do not accept the certificate at this time, or undefined if they do. */
function whyOutdated({ cert }: Certificate, nowMs: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(cert);
  if (Date.parse(validTo) <= nowMs) return `expired at ${validTo}`;
  return Date.parse(validFrom) > nowMs ? `is not valid until ${validFrom}` : undefined;
}

interface Following {
  /** Returns the certificate currently in use. */
  readonly current: () => Certificate;
  /** Returns the reason why the files currently can't be used, or undefined if they can be used. */
  readonly problem: () => string | undefined;
  readonly stop: () => void;
}

/** A new certificate is served after at most this time. */
const READ_EVERY_MS = 5_000;

/**
 * Reads the files again every five seconds. `onChange` is called for a new certificate. If the files are not valid,
 * e.g. because only one of them has been replaced, the last valid certificate is used. An expired certificate, or one
 * that is not valid yet, never replaces a valid one.
 */
export function followCertificate(options: {
  readonly served: ServedCertificate;
  readonly onChange: (certificate: Certificate) => void;
  readonly log: Logger;
  readonly everyMs?: number;
}): Following {
  const { served, onChange, log, everyMs = READ_EVERY_MS } = options;
  let current = served.first;
  let problem: string | undefined;

  function look(): void {
    const problems: string[] = [];
    const found = readCertificate(served.files, problems);
    try {
      const isNew = found !== undefined && found.cert !== current.cert;
      const outdated = isNew ? whyOutdated(found, Date.now()) : undefined;
      if (outdated !== undefined && whyOutdated(current, Date.now()) === undefined) {
        problems.push(
          `${served.files.certificates.variable}: the certificate ${outdated}: ${served.files.certificates.path}`,
        );
      } else if (isNew) {
        onChange(found);
        current = found;
        log.info({ file: served.files.certificates.path }, 'serving a new certificate');
      }
    } catch (error) {
      problems.push(`${served.files.certificates.variable}: ${(error as Error).message}`);
    }
    const now = problems.length === 0 ? undefined : problems.join('; ');
    if (now !== undefined && now !== problem) {
      log.warn({ detail: now }, 'failed to load the new certificate, using the previous one');
    }
    problem = now;
  }

  const timer = setInterval(look, everyMs);
  timer.unref();
  return { current: () => current, problem: () => problem, stop: () => clearInterval(timer) };
}
