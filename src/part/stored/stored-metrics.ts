import { Gauge, type Registry, registerGauge } from '../../telemetry/metrics.ts';
import { createSampler } from '../../telemetry/sampler.ts';
import type { StoredEvents } from './stored-bytes.ts';

/** The number of workspaces that have a series. */
const LARGEST = 10;

/** Returns the workspaces which store the most, starting with the largest. */
function largestWorkspaces(stored: readonly StoredEvents[]): readonly (readonly [tenant: string, bytes: number])[] {
  const bytesOf = new Map<string, number>();
  for (const { tenant, bytes } of stored) bytesOf.set(tenant, (bytesOf.get(tenant) ?? 0) + bytes);
  return [...bytesOf].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, LARGEST);
}

/**
 * Registers a metric for the stored bytes of the largest workspaces, and for the total. If a workspace is not one of
 * the largest any more, its series is removed with the next sample, which ensures that there are never more than ten.
 */
export function registerStoredMetrics(
  registry: Registry,
  readStored: () => Promise<readonly StoredEvents[]>,
  monotonicMs?: () => number,
): void {
  const read = createSampler(readStored, { ...(monotonicMs && { monotonicMs }) });
  const sampled =
    'All dispatchers report the same value. To aggregate, use the maximum. While the process is scraped, the value is updated about every 15 s.';
  new Gauge({
    name: 'sluice_workspace_stored_bytes',
    help: `The number of bytes that stored events of a workspace use, by public id of the workspace (tenant). Rounded up to 64 KiB for each stream. Only reported for the ten workspaces that store the most. The series of a workspace ends when it is no longer among them. ${sampled} There are no series while Redis is unavailable.`,
    labelNames: ['tenant'] as const,
    registers: [registry],
    async collect() {
      const stored = await read();
      this.reset();
      for (const [tenant, bytes] of largestWorkspaces(stored ?? [])) this.set({ tenant }, bytes);
    },
  });
  registerGauge(
    registry,
    'sluice_stored_bytes',
    `The number of bytes that stored events of all workspaces use, rounded up to 64 KiB for each stream. ${sampled} The value is NaN while Redis is unavailable.`,
    async () => (await read())?.reduce((sum, { bytes }) => sum + bytes, 0),
  );
}
