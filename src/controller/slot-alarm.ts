import type { ControlStore } from '../record/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Clock } from '../time/clock.ts';
import type { Caches } from './caches/caches.ts';

/** Only the first alarm of a tenant within this time is processed. In milliseconds. */
const SAME_ALARM_MS = 1_000;

/**
 * Returns a listener for control state that another role reports as missing. The listener applies the tenant again
 * unless all of the data has been lost. In that case, the loss watch rebuilds the data.
 */
export function createSlotAlarm(deps: {
  readonly caches: Pick<Caches, 'Integration' | 'Workspace'>;
  readonly control: Pick<ControlStore, 'readCluster'>;
  /** Returns true if this replica has claimed an epoch in a term that has not ended yet. */
  readonly hasEpoch: () => boolean;
  /** Reads the tenant from Redis and then applies it again. */
  readonly reapply: (tenant: string) => void;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Pick<Logger, 'debug'>;
}): (slot: string) => void {
  const { caches, control, clock, log } = deps;
  const lastMs = new Map<string, number>();

  function tenantOf(slot: string): string | undefined {
    const [kind, id = ''] = slot.split(':');
    if (kind === 'i') return caches.Integration.store.byIndex('publicId', id)[0]?.metadata.namespace;
    return caches.Workspace.store.byIndex('publicId', id)[0]?.metadata.name;
  }

  return slot => {
    const tenant = deps.hasEpoch() ? tenantOf(slot) : undefined;
    const nowMs = clock.nowMs();
    if (tenant === undefined || nowMs - (lastMs.get(tenant) ?? Number.NEGATIVE_INFINITY) < SAME_ALARM_MS) return;
    lastMs.set(tenant, nowMs);
    control.readCluster().then(
      ({ ready }) => {
        if (ready) deps.reapply(tenant);
      },
      error => log.debug({ err: error as Error }, 'failed to read Redis'),
    );
  };
}
