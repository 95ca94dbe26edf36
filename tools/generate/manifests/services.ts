import type { ServedPort, Workload } from '../roles.ts';
import { labelsOf } from './metadata.ts';
import { tlsSecretOf } from './served-files.ts';
import type { Target } from './target.ts';

type Named = Pick<Workload, 'name'>;

/** Returns the Service of a role that serves requests. */
export function serviceOf({ name }: Named, port: ServedPort, target: Target): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: `${target.prefix}-${name}`,
      namespace: target.namespace,
      labels: labelsOf(target, name),
      ...target.when(`${name}.service.annotations`, { annotations: target.tree(`${name}.service.annotations`) }),
    },
    spec: {
      type: target.value(`${name}.service.type`),
      selector: labelsOf(target, target.componentOf(name)),
      ports: [
        {
          name: 'http',
          port: target.value(`${name}.service.port`),
          targetPort: port.name,
          appProtocol: target.choose(tlsSecretOf(name), 'https', 'http'),
        },
      ],
      ...target.merge(`${name}.service.extraSpec`),
    },
  };
}

function exposed({ name }: Named, target: Target) {
  const annotations = `${name}.expose.annotations`;
  return {
    name: `${target.prefix}-${name}`,
    namespace: target.namespace,
    labels: labelsOf(target, name),
    ...target.when(annotations, { annotations: target.tree(annotations) }),
  };
}

/** Returns the Ingress for a role's Service. */
export function ingressOf(role: Named, port: ServedPort, target: Target): object {
  const at = (key: string) => `${role.name}.expose.${key}`;
  const host = target.value(at('host'), { as: 'text' });
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: exposed(role, target),
    spec: {
      ...target.when(at('className'), { ingressClassName: target.value(at('className')) }),
      ...target.when(at('tlsSecret'), { tls: [{ hosts: [host], secretName: target.value(at('tlsSecret')) }] }),
      rules: [
        {
          host,
          http: {
            paths: [
              {
                path: port.path,
                pathType: 'Prefix',
                backend: { service: { name: `${target.prefix}-${role.name}`, port: { name: 'http' } } },
              },
            ],
          },
        },
      ],
    },
  };
}

/** Returns the HTTPRoute of the Gateway API for a role's Service. */
export function httpRouteOf(role: Named, port: ServedPort, target: Target): object {
  const at = (key: string) => `${role.name}.expose.${key}`;
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: exposed(role, target),
    spec: {
      parentRefs: target.tree(at('parentRefs')),
      hostnames: [target.value(at('host'), { as: 'text' })],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: port.path } }],
          backendRefs: [{ name: `${target.prefix}-${role.name}`, port: target.value(`${role.name}.service.port`) }],
        },
      ],
    },
  };
}
