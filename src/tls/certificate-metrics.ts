import { Gauge, type Registry } from '../telemetry/metrics.ts';
import { createSampler } from '../telemetry/sampler.ts';

/** The certificates used by Sluice. */
export const CERTIFICATE_USES = ['redis', 'redis_client', 'smtp', 'ingress', 'facade'] as const;
export type CertificateUse = (typeof CERTIFICATE_USES)[number];

interface CertificateSource {
  /** Returns the expiry time of the certificate in milliseconds since 1970, or undefined if it is not known. */
  readonly endMs: () => Promise<number | undefined> | number | undefined;
  /** Returns true if the files of the certificate currently can't be used. Omitted if there are no files. */
  readonly rejected?: () => boolean;
}

export interface CertificateMetrics {
  /** Adds a certificate to the metrics. An existing certificate for the same use is replaced. */
  readonly watch: (use: CertificateUse, source: CertificateSource) => void;
}

/** Certificates are valid for days. Reading one requires a new connection. */
const SAMPLE_EVERY_MS = 600_000;

/** Registers metrics for the expiry of certificates, and for whether their files can be used. */
export function createCertificateMetrics(
  registry: Registry,
  monotonicMs = () => performance.now(),
): CertificateMetrics {
  const registers = [registry];
  const labelNames = ['use'] as const;
  const sources = new Map<CertificateUse, CertificateSource>();
  const samplers = new Map<CertificateUse, () => Promise<number | undefined>>();
  new Gauge({
    name: 'sluice_certificate_expiry_timestamp_seconds',
    help: 'The time at which a certificate expires, in seconds since 1970, by use: redis and smtp (server certificates), redis_client, ingress, and facade (own certificates). NaN if TLS is not used, or if the time is not known. While the process is scraped, the value is updated about every 10 minutes over a new connection to the server. If the connection fails, for example because the certificate has expired, the last known time is kept.',
    labelNames,
    registers,
    async collect() {
      const ends = await Promise.all(CERTIFICATE_USES.map(async use => samplers.get(use)?.()));
      for (const [i, use] of CERTIFICATE_USES.entries()) this.set({ use }, (ends[i] ?? Number.NaN) / 1_000);
    },
  });
  new Gauge({
    name: 'sluice_certificate_rejected',
    help: '1 if the files of a certificate of this process cannot be used and the previous certificate remains in use, and 0 otherwise, by use.',
    labelNames,
    registers,
    collect() {
      for (const use of CERTIFICATE_USES) this.set({ use }, sources.get(use)?.rejected?.() === true ? 1 : 0);
    },
  });
  return {
    watch(use, source) {
      sources.set(use, source);
      let lastMs: number | undefined;
      // New connections are refused if the certificate has expired, but existing connections are still used.
      const look = async () => (lastMs = (await source.endMs()) ?? lastMs);
      const read = createSampler(look, { everyMs: SAMPLE_EVERY_MS, monotonicMs });
      samplers.set(use, async () => (await read()) ?? lastMs);
    },
  };
}
