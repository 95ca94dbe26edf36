import { z } from 'zod';

const EXAMPLE = '{"count/activations.sluice.dev": "10000"}';
/** Resources of Kubernetes that a ResourceQuota can limit without a prefix. */
const OF_KUBERNETES = new Set(
  'cpu memory ephemeral-storage pods services secrets configmaps persistentvolumeclaims replicationcontrollers resourcequotas'.split(
    ' ',
  ),
);
/** Matches all resources of Sluice, also misspelled ones. Kubernetes would accept them without limiting anything. */
const OF_SLUICE = /(?:^|\/|\.)sluice\.dev$/;
const COUNTED = /^count\/(?:catalogstreams|packages|integrations|activations|blocks|subscriptions)\.sluice\.dev$/;

/** Limits by resource. Numbers are accepted because YAML parses a quantity without a unit as a number. */
const QUOTA = z.record(
  z.string().min(1),
  z.union([z.string().regex(/^\d+(\.\d+)?([a-zA-Z]{1,2})?$/), z.int().min(0)]).transform(String),
);

/**
 * The quota of each workspace, as a JSON object. Rejects names that Kubernetes would reject, because the namespaces
 * would then have no quota, and names of Sluice's resources that do not exist in a namespace.
 */
export const WORKSPACE_QUOTA = z.string().transform((text, context) => {
  const parsed = QUOTA.safeParse(parseJson(text));
  const wrong = Object.keys(parsed.data ?? {}).find(name => !isLimited(name));
  if (parsed.success && wrong === undefined) return parsed.data;
  const message =
    wrong === undefined
      ? `must be a JSON object with a limit for each resource, such as ${EXAMPLE}`
      : `${wrong} is not the name of a resource that a ResourceQuota can limit; use a name such as in ${EXAMPLE}`;
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

function isLimited(name: string): boolean {
  if (OF_SLUICE.test(name)) return COUNTED.test(name);
  return OF_KUBERNETES.has(name) || /^hugepages-|[./]/.test(name);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
