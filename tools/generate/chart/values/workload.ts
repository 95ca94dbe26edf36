import { z } from 'zod';
import type { Workload } from '../../roles.ts';
import { openList, openObject, section, text, textObject } from './value-types.ts';

const expose = section('Access from outside of the cluster.', {
  type: z
    .enum(['None', 'Ingress', 'HTTPRoute'])
    .default('None')
    .describe('The object to create: None, Ingress, or HTTPRoute (Gateway API).'),
  host: text('The host name, which is required unless the type is None.'),
  annotations: textObject("The object's annotations."),
  className: text('The class of an Ingress. Defaults to the default class of the cluster.'),
  tlsSecret: text('The name of the Secret containing the certificate of an Ingress.'),
  parentRefs: openList('The Gateways of an HTTPRoute, e.g. [{name: public, namespace: gateways}].'),
});

const service = section("The role's Service.", {
  type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP').describe('The type of the Service.'),
  port: z.int().min(1).max(65_535).default(80).describe('The port of the Service.'),
  annotations: textObject('The annotations of the Service.'),
  extraSpec: openObject(
    'More fields of spec, e.g. {externalTrafficPolicy: Local}, which preserves the addresses of clients.',
    { ipFamilyPolicy: 'PreferDualStack' },
  ),
});

/** The value for the cert-manager issuer of a certificate. */
export const issuerRef = (certificate: string) =>
  openObject(
    `The cert-manager issuer, e.g. {name: internal, kind: ClusterIssuer}. If set, a Certificate is created for ${certificate}.`,
  );

const tls = section('The certificate used by the role itself. If not set, the role serves plain HTTP.', {
  secretName: text(
    'The name of the Secret containing the certificate in the keys tls.crt and tls.key. The role then only accepts TLS, so also set service.port to 443, and configure an Ingress or a Gateway to connect with TLS. New certificates are used within two minutes, without a restart.',
  ),
  issuerRef: issuerRef('this Secret, which includes the names of the Service and expose.host'),
});

/** The values for choosing the nodes of pods. */
export const nodes = (pods: 'pod' | 'pods') => ({
  nodeSelector: textObject('Labels of the nodes to run on.'),
  tolerations: openList(`The tolerations of the ${pods}.`),
});

/** The roles with a heap limit that depends on the memory limit. */
const USES_HEAP: ReadonlySet<Workload['name']> = new Set(['controller', 'facade', 'all']);

const isFacade = ({ name }: Workload) => name === 'facade';

/** The values of a role. */
export function workload(of: Workload) {
  return section(of.description, {
    ...(isFacade(of)
      ? {
          enabled: z
            .boolean()
            .default(true)
            .describe('If true, the REST API is installed. Requires oidc.issuers and oidc.audience.'),
        }
      : {}),
    replicas: z.int().min(0).default(of.replicas).meta({ nullable: true }).describe('The number of pods.'),
    autoscaled: z
      .boolean()
      .default(false)
      .describe(
        'Set to true if a HorizontalPodAutoscaler changes the number of pods. In this case, replicas is not used. If you set it to true in an upgrade with Helm 3, there is only one pod until the autoscaler adds more.',
      ),
    resources: openObject(
      USES_HEAP.has(of.name)
        ? 'The resource requests and limits. Three quarters of limits.memory are used as heap.'
        : 'The resource requests and limits.',
      of.resources,
    ),
    maxUnavailable: z
      .union([z.int().min(0), z.string().regex(/^[0-9]+%$/)])
      .default(1)
      .describe('The number or percentage of pods that can be evicted at the same time.'),
    podLabels: textObject('The labels of the pods.'),
    podAnnotations: textObject('The annotations of the pods.'),
    ...nodes('pods'),
    affinity: openObject('The affinity of the pods, in addition to spreading them over hosts and zones.'),
    priorityClassName: text('The priority class of the pods.'),
    extraEnv: openList(
      'Environment variables, e.g. [{name: OTEL_SERVICE_NAME, value: events}]. They can replace variables of the ConfigMap, but not those that the pod gets in another way.',
    ),
    extraVolumes: openList('The volumes of the pods.'),
    extraVolumeMounts: openList('The mounts for extraVolumes.'),
    ...(of.name !== 'all' && of.serves.length > 0 ? { service, tls, expose } : {}),
  });
}
