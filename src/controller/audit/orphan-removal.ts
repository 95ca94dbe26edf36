import type { ControlAudit } from '../../record/control-audit.ts';
import type { PatchOp } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
import type { ControlSweep } from '../../record/control-sweep.ts';
import { CLUSTER_KEYS, tenantKeys } from '../../redis/keys.ts';
import type { Logger } from '../../telemetry/log.ts';
import { inSlices } from '../../time/slices.ts';
import type { AuditMetrics, Swept } from './audit-metrics.ts';
import { findOrphans, type Owned } from './orphans.ts';

/** A tenant which might have orphaned data. */
export interface Suspect {
  /** The ID of this tenant (`ten_…`). */
  readonly tenant: string;
  /** The name of this tenant. Undefined if no object refers to this tenant. */
  readonly name: string | undefined;
  readonly owned: Owned;
}

export interface OrphanRemovalDeps {
  readonly store: Pick<ControlAudit, 'readRoutes'>;
  readonly control: Pick<ControlStore, 'patch'>;
  readonly purger: ControlSweep;
  readonly metrics: Pick<AuditMetrics, 'swept'>;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'info'>;
}

/**
 * Removes all orphans of a tenant. Queues with undelivered events and inboxes within their retention period are kept.
 *
 * @param dryRun if true, orphans will only be counted
 * @returns the number of orphans that have been removed
 */
export async function removeOrphans(
  deps: OrphanRemovalDeps,
  { tenant, name, owned }: Suspect,
  fence: number,
  dryRun: boolean,
): Promise<number> {
  const { control, purger } = deps;
  const nowMs = deps.nowMs();
  const t = tenantKeys(tenant);
  const { routes, hashes } = (await deps.store.readRoutes(tenant, [])).stored;
  const index = { ...hashes?.get(t.index) };
  const orphans = await inSlices(findOrphans(index, routes, owned));
  const ops: PatchOp[] = [];
  let count = 0;
  const note = (what: Swept, entry?: string): void => {
    count++;
    if (entry !== undefined) delete index[entry];
    if (dryRun) return;
    if (entry !== undefined) ops.push({ command: 'HDEL', key: t.index, args: [entry] });
    deps.metrics.swept(what);
    deps.log.info({ tenant: name ?? tenant, what, entry }, 'removed an orphan');
  };

  for (const inbox of orphans.inboxes) {
    if (await purger.purgeInbox(fence, inbox, nowMs, inbox.retentionMs, dryRun)) {
      note('inbox', `s:${inbox.integration}:${inbox.sub}`);
    }
  }
  for (const { queue, gen } of orphans.queues) {
    if (!(await purger.purgeQueue(fence, { tenant, queue, gen }, nowMs, dryRun))) continue;
    note('queue', `q:${queue}`);
    if (!dryRun) ops.push({ command: 'UNLINK', key: t.subs(queue), args: [] });
  }
  // A tenant may have 10,000 integrations, so the index is only searched once.
  const used = new Set(Object.keys(index).map(entry => /^s:([^:]*):/.exec(entry)?.[1]));
  for (const integration of orphans.integrations) {
    if (used.has(integration)) continue;
    if (await purger.purgeIntegration(fence, integration, nowMs, dryRun)) note('integration', `i:${integration}`);
  }
  if (ops.length > 0) await control.patch(fence, [{ meta: t.meta, ops }]);
  if (!orphans.tenant || Object.keys(index).length > 0) return count;
  // During a dry run, the index in Redis still includes entries which would have been removed.
  if (dryRun) return count + 1;
  if (await purger.purgeTenant(fence, tenant, nowMs, dryRun)) {
    const delist: PatchOp = { command: 'SREM', key: CLUSTER_KEYS.tenants, args: [tenant] };
    await control.patch(fence, [{ meta: CLUSTER_KEYS.meta, ops: [delist] }]);
    note('tenant');
  }
  return count;
}
