import { z } from 'zod';
import { readCertificate, type ServedCertificate } from '../tls/served-certificate.ts';

const file = () => z.string().min(1).optional();

/** The variables used to configure the ingress certificates and the facade. */
export const TLS_ENVIRONMENT = {
  SLUICE_INGRESS_CERT_FILE: file().describe(
    'The path to a PEM file with the certificate of the ingress role, followed by any intermediate certificates. If set, SLUICE_INGRESS_PORT only accepts TLS. This file and its key are reloaded every 5 seconds, so you can replace them without a restart.',
  ),
  SLUICE_INGRESS_KEY_FILE: file().describe('The path to a PEM file with the private key, without a passphrase.'),
  SLUICE_FACADE_CERT_FILE: file().describe(
    'The path to a PEM file with the certificate of the facade role, using the same format as for ingress. If set, SLUICE_FACADE_PORT only accepts TLS.',
  ),
  SLUICE_FACADE_KEY_FILE: file().describe('The path to a PEM file with the private key, without a passphrase.'),
} as const;

const VARIABLES = {
  ingress: ['SLUICE_INGRESS_CERT_FILE', 'SLUICE_INGRESS_KEY_FILE'],
  facade: ['SLUICE_FACADE_CERT_FILE', 'SLUICE_FACADE_KEY_FILE'],
} as const;

type Values = z.output<z.ZodObject<typeof TLS_ENVIRONMENT>>;

/**
 * Reads the certificate to use for a role. If there is an error, the required change will be added to `problems`.
 * Returns undefined if the role should serve plain HTTP.
 */
export function readServedCertificate(
  role: 'ingress' | 'facade',
  data: Values,
  problems: string[],
): ServedCertificate | undefined {
  const [certVariable, keyVariable] = VARIABLES[role];
  const certificates = { variable: certVariable, path: data[certVariable] };
  const key = { variable: keyVariable, path: data[keyVariable] };
  if (certificates.path === undefined && key.path === undefined) return undefined;
  for (const [missing, other] of [
    [certificates, key],
    [key, certificates],
  ] as const) {
    if (missing.path !== undefined) continue;
    problems.push(`${missing.variable}: required, because ${other.variable} is set`);
    return undefined;
  }
  const files = Object.freeze({ certificates, key });
  const first = readCertificate(files, problems);
  return first && Object.freeze({ files, first });
}
