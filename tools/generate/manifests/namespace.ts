import type { Installation } from '../installation.ts';
import { labelsOf } from './metadata.ts';

/** Returns the namespace, which rejects pods that are not restricted. */
export function systemNamespace(installation: Installation): object {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: installation.namespace,
      labels: { ...labelsOf(installation), 'pod-security.kubernetes.io/enforce': 'restricted' },
    },
  };
}
