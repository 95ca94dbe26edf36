import { controllerProbe, facadeProbe } from '../kube/access/policy-probes.ts';
import { createPolicyWatch } from '../kube/access/policy-watch.ts';
import type { KubeClient } from '../kube/client.ts';
import { systemClock } from '../time/clock.ts';
import type { Parts } from './parts.ts';

/** Checks whether the admission policies limit this role, until `stop` is aborted. */
export function watchPolicies(
  { config, kubeMetrics, log }: Parts,
  role: 'controller' | 'facade',
  client: KubeClient,
  stop: AbortSignal,
): void {
  const probe = role === 'controller' ? controllerProbe(config.namespace) : facadeProbe();
  const onResult = (missing: boolean) => kubeMetrics().policiesMissing(role, missing);
  void createPolicyWatch({ client, probe, onResult, clock: systemClock, log }).run(stop);
}
