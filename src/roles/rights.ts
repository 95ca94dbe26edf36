import { createRightsWatch, type NeededRole } from '../kube/access/rights-watch.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ImpairmentCheck } from '../telemetry/role-health.ts';
import { systemClock } from '../time/clock.ts';
import type { Parts } from './parts.ts';

/** Checks that Kubernetes has granted all permissions required by these roles, until `stop` is aborted. */
export function watchRights(
  { log }: Parts,
  client: KubeClient,
  stop: AbortSignal,
  roles: readonly NeededRole[],
): ImpairmentCheck {
  const watch = createRightsWatch({ client, roles, clock: systemClock, log });
  void watch.run(stop);
  return watch.impairments;
}
