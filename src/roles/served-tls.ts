import { logOfRole } from '../telemetry/log.ts';
import { endOf } from '../tls/pem-files.ts';
import { type Certificate, followCertificate, type ServedCertificate } from '../tls/served-certificate.ts';
import type { Parts } from './parts.ts';

/** Updates the server certificate when its files change. Returns a function to stop this. */
export function followServedCertificate(
  { log, certificates }: Pick<Parts, 'log' | 'certificates'>,
  role: 'ingress' | 'facade',
  served: ServedCertificate | undefined,
  server: { readonly useCertificate: (certificate: Certificate) => void },
): () => void {
  if (served === undefined) return () => {};
  const following = followCertificate({ served, onChange: server.useCertificate, log: logOfRole(log, role) });
  certificates.watch(role, {
    endMs: () => endOf(following.current().cert),
    rejected: () => following.problem() !== undefined,
  });
  return following.stop;
}
