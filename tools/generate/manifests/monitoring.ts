import { labelsOf } from './metadata.ts';
import type { Target } from './target.ts';

/** Returns the PodMonitor for all pods of an installation. The `job` label of its metrics is the object name. */
export function podMonitor(target: Target): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PodMonitor',
    metadata: {
      name: target.prefix,
      namespace: target.namespace,
      labels: { ...labelsOf(target), ...target.merge('monitoring.podMonitor.labels') },
    },
    spec: {
      selector: { matchLabels: labelsOf(target) },
      podMetricsEndpoints: [
        { port: 'ops', path: '/metrics', interval: target.value('monitoring.podMonitor.interval') },
      ],
    },
  };
}
