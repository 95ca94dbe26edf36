import { expect, test } from 'vitest';
import { createRegistry } from '../telemetry/metrics.ts';
import { createCertificateMetrics } from './certificate-metrics.ts';

const TEN_MINUTES_MS = 600_000;

test('reports the last known time if the certificate cannot be read, e.g. because it has expired', async () => {
  const registry = createRegistry();
  const clock = { ms: 0 };
  const { watch } = createCertificateMetrics(registry, () => clock.ms);
  const answers: (() => number)[] = [
    () => {
      throw new Error('the server is not running yet');
    },
    () => 5_000,
    () => {
      throw new Error('certificate has expired');
    },
    () => 9_000,
  ];
  watch('redis', { endMs: async () => (answers.shift() as () => number)() });
  const seen: (string | undefined)[] = [];
  while (answers.length > 0) {
    const name = 'sluice_certificate_expiry_timestamp_seconds{use="redis"}';
    seen.push(
      (await registry.metrics())
        .split('\n')
        .find(line => line.startsWith(name))
        ?.split(' ')[1],
    );
    clock.ms += TEN_MINUTES_MS;
  }
  expect(seen).toEqual(['Nan', '5', '5', '9']);
});
