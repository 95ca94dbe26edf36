import { OPS_PORT, type Workload } from '../roles.ts';
import { labelsOf } from './metadata.ts';
import type { Target } from './target.ts';

type Connection = Workload['connects'][number];

/** Returns a role's NetworkPolicy, which denies all connections that are not listed. */
export function networkPolicyOf(
  workload: Pick<Workload, 'serves' | 'connects'> & { readonly name: string },
  target: Target,
): object {
  const tcp = (port: unknown) => ({ protocol: 'TCP', port });
  const toPorts = (kind: Parameters<Target['eachPort']>[0]) => ({ ports: target.eachPort(kind, tcp) });
  const others = workload.connects.filter((to): to is Exclude<Connection, 'internet'> => to !== 'internet');
  return {
    ...head(workload.name, target),
    spec: {
      podSelector: { matchLabels: labelsOf(target, workload.name) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ ports: [...workload.serves.map(({ number }) => tcp(number)), tcp(OPS_PORT)] }],
      egress: [
        { ports: ['UDP', 'TCP'].map(protocol => ({ protocol, port: 53 })) },
        toPorts('redis'),
        ...others.map(to =>
          to === 'kubernetes' ? { ports: target.each('networkPolicy.kubernetesPorts', tcp) } : toPorts(to),
        ),
        ...target.itemsWhen('tracing.endpoint', [toPorts('collector')]),
        // Partner endpoints can use any port.
        ...(workload.connects.includes('internet') ? target.endpointRules : []),
      ],
    },
  };
}

/**
 * Returns the NetworkPolicy for the evaluation Redis, which only accepts connections from pods of this installation.
 */
export function redisNetworkPolicy(target: Target): object {
  return {
    ...head('redis', target),
    spec: {
      podSelector: { matchLabels: labelsOf(target, 'redis') },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [{ podSelector: { matchLabels: labelsOf(target) } }],
          ports: [{ protocol: 'TCP', port: 6379 }],
        },
      ],
      egress: [],
    },
  };
}

function head(component: string, target: Target) {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: `${target.prefix}-${component}`,
      namespace: target.namespace,
      labels: labelsOf(target, component),
    },
  };
}
