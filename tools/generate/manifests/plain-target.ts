import type { Values } from '../chart/values/values.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import type { Target } from './target.ts';

/** The number of seconds for completing requests in progress after a role has stopped accepting new requests. */
export const STOP_SECONDS = 25;

/** Creates the rendering for kustomize, in which `values` have already been applied. */
export function createPlainTarget(values: Values): Target {
  const at = (path: string): unknown =>
    path.split('.').reduce((node: unknown, key) => (node as Record<string, unknown>)[key], values);
  const isSet = (path: string): boolean => {
    const value = at(path);
    return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
  };
  return {
    ...DEFAULT_INSTALLATION,
    image: `${values.image.repository}:${values.image.tag}`,
    redisImage: `${values.image.repository}-redis:${values.image.tag}`,
    componentOf: role => role,
    secretOf: subject => `${DEFAULT_INSTALLATION.prefix}-${subject}`,
    value: (path, { as } = {}) => {
      const value = at(path);
      if (as === 'joined') return (value as readonly unknown[]).join(',');
      if (as === 'pairs')
        return Object.entries(value as object)
          .map(pair => pair.join('='))
          .join(',');
      return as === 'text' ? String(value) : value;
    },
    tree: at,
    choose: (path, yes, no) => (isSet(path) ? yes : no),
    when: (path, fields) => (isSet(path) ? fields : {}),
    unlessAutoscaled: (workload, fields) => (at(`${workload}.autoscaled`) ? {} : fields),
    whenIs: (path, is, fields) => (at(path) === is ? fields : {}),
    itemsWhen: (path, items) => (isSet(path) ? items : []),
    each: (path, item) => (at(path) as readonly unknown[]).map(item),
    // Plain manifests do not contain URLs with other ports.
    eachPort: (kind, item) => values.networkPolicy[`${kind}Ports`].map(item),
    spread: path => at(path) as readonly unknown[],
    merge: path => at(path) as object,
    endpointRules: endpointRulesOf(values),
    graceSeconds: STOP_SECONDS + values.shutdownDelaySeconds,
    checksums: {},
    smtpOptional: true,
  };
}

/** Omits refusedNetworks because plain manifests do not contain any. */
function endpointRulesOf({ networkPolicy, allowedNetworks }: Values): object[] {
  const blocks = [
    { cidr: '0.0.0.0/0', except: networkPolicy.clusterNetworks },
    { cidr: '::/0', except: networkPolicy.clusterNetworksV6 },
    ...allowedNetworks.map(cidr => ({ cidr })),
  ];
  return blocks.map(ipBlock => ({ to: [{ ipBlock }] }));
}
