import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { VERSION } from '../../../src/config/version.ts';
import { describeCrd } from '../../../src/kube/definitions/crds.ts';
import { REGISTRY, Values } from '../chart/values/values.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import { systemNamespace } from '../manifests/namespace.ts';
import { createPlainTarget } from '../manifests/plain-target.ts';
import { redisObjects } from '../manifests/redis.ts';
import { serviceOf } from '../manifests/services.ts';
import { configMap } from '../manifests/settings.ts';
import { workloadObjects } from '../manifests/workloads.ts';
import { stringifyAll } from '../manifests/yaml.ts';
import { describeRights } from '../rbac/rbac.ts';
import { WORKLOADS } from '../roles.ts';

/**
 * Renders the objects of config/default as a single file for `kubectl apply --server-side`, using the images of a
 * registry.
 *
 * @param registry host, with a port and a path if needed, e.g. `registry.example.com/team`
 * @param options.evaluation adds a single Redis. Each role has one pod. The facade is not included, because it requires
 * an identity
 *   provider.
 * @throws {RangeError} if `registry` cannot be part of the name of an image
 */
export function renderInstallFile(registry: string, { evaluation }: { readonly evaluation: boolean }): string {
  if (!REGISTRY.test(registry)) {
    throw new RangeError(`${JSON.stringify(registry)} is not a registry: use its host, e.g. registry.example.com`);
  }
  const replicas = Object.fromEntries(WORKLOADS.map(({ name }) => [name, { replicas: name === 'facade' ? 0 : 1 }]));
  const image = { repository: `${registry}/${DEFAULT_INSTALLATION.prefix}`, tag: VERSION };
  const target = createPlainTarget(Values.parse({ image, ...(evaluation ? replicas : {}) }));
  const objects = [
    systemNamespace(DEFAULT_INSTALLATION),
    ...Object.values(KINDS).map(describeCrd),
    ...Object.values(describeRights(DEFAULT_INSTALLATION)).flat(),
    configMap(target),
    ...WORKLOADS.flatMap(workload => [
      ...workloadObjects(workload, target),
      ...workload.serves.map(port => serviceOf(workload, port, target)),
    ]),
    ...(evaluation ? redisObjects(target) : []),
  ];
  return `# Sluice ${VERSION}. Apply it with kubectl apply --server-side --filename.\n${stringifyAll(objects)}`;
}
