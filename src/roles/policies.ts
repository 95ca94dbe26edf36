import { createPolicyWatch, type PolicyProbe } from '../kube/access/policy-watch.ts';
import type { KubeClient } from '../kube/client.ts';
import { systemClock } from '../time/clock.ts';
import type { Parts } from './parts.ts';

/** Checks if the admission policies limit this role, until `stop` is aborted. */
export function watchPolicies(
  { kubeMetrics, log }: Parts,
  role: 'controller' | 'facade',
  client: KubeClient,
  probe: PolicyProbe,
  stop: AbortSignal,
): void {
  const onResult = (missing: boolean) => kubeMetrics().policiesMissing(role, missing);
  onResult(false);
  void createPolicyWatch({ client, probe, onResult, clock: systemClock, log }).run(stop);
}
