import type { TenantRoutes } from '../../../src/core/routing/routes.ts';
import { createPartsControl } from '../../../src/part/control/parts-control.ts';
import { planRoutes } from '../../../src/record/control-plan.ts';
import { type ControlStore, createControlRecord, type RoutesChange } from '../../../src/record/control-store.ts';
import type { RedisClient } from '../../../src/redis/client.ts';

/** Writes routes to parts and record in the same order as a controller. */
export async function putRoutes(
  control: Pick<ControlStore, 'readTenant' | 'applyParts' | 'patch'>,
  change: Omit<RoutesChange, 'have'>,
): Promise<void> {
  const { fence, want } = change;
  const stored = await control.readTenant(want.tenant, fence);
  await control.applyParts({ ...change, have: stored.routes });
  const plan = planRoutes(stored, want);
  await control.patch(fence, [...plan.patches, ...plan.ready]);
}

/**
 * Writes routes like a controller that has just started to lead, so that roles of the data plane do not require
 * Kubernetes.
 * @param openKeys open group keys, by integration
 */
export async function writeRoutes(
  redis: RedisClient,
  want: TenantRoutes,
  openKeys: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const nowMs = Date.now();
  const control = createPartsControl(redis, createControlRecord(redis), Date.now);
  const led = await control.lead('test', 0, nowMs);
  if (!('epoch' in led)) throw new Error('this Redis belongs to another cluster');
  const fence = led.epoch;
  const gates = new Map(
    Object.entries(openKeys).map(([integration, groupKeys]) => {
      return [integration, groupKeys.map(groupKey => ({ groupKey, sinceMs: nowMs }))] as const;
    }),
  );
  await putRoutes(control, { fence, want, isKnown: false, openKeys: () => gates });
  await control.enlist(fence, want.tenant);
  await control.markClusterReady(fence);
}
