import type { Installation } from '../installation.ts';
import { describedMetadata } from '../manifests/metadata.ts';

/**
 * The precedence, which is higher than the Kubernetes FlowSchemas for other service accounts and lower than the
 * FlowSchemas for leader election in Kubernetes.
 */
const PRECEDENCE = 300;

/**
 * Returns the FlowSchema that assigns requests for the controller's Lease to the priority level for leader election.
 * Otherwise, if other clients flood the API server, its responses could be too late, and the leader would lose its
 * Lease.
 */
export function leaseFlowSchema(installation: Installation): object {
  const { prefix, namespace, accountOf } = installation;
  return {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: describedMetadata(installation, {
      name: `${prefix}-leases`,
      description: 'Separates Lease requests of the controller from all other requests.',
    }),
    spec: {
      priorityLevelConfiguration: { name: 'leader-election' },
      matchingPrecedence: PRECEDENCE,
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'ServiceAccount', serviceAccount: { name: accountOf('controller'), namespace } }],
          resourceRules: [
            {
              apiGroups: ['coordination.k8s.io'],
              resources: ['leases'],
              verbs: ['get', 'create', 'update'],
              namespaces: [namespace],
            },
            // Before it leads, the controller searches for other installations.
            { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'], clusterScope: true },
          ],
        },
      ],
    },
  };
}
