import { connect, type KubeClient } from '../../../src/kube/client.ts';
import type { Resource } from '../../../src/kube/resource.ts';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { type Kubectl, kubectlFor } from '../../support/kubernetes/kubectl.ts';
import { kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { type Manifest, openHelm, outputOf, renderChart, type ValueSet } from './helm.ts';

/** Kinds of the objects that grant and limit rights. */
const OF_RIGHTS =
  /^(ServiceAccount|(Cluster)?Role(Binding)?|ValidatingAdmissionPolicy(Binding)?|FlowSchema|PriorityLevelConfiguration)$/;

/** The permissions of a release in a cluster, without its pods. */
export interface InstalledRights {
  readonly objects: readonly Manifest[];
  readonly kubectl: Kubectl;
  /** Returns a client with the token of a role's service account. */
  readonly open: (role: string) => Promise<KubeClient>;
}

const asList = (items: readonly object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

/** Applies the rendered RBAC objects of the chart. The namespace has the release's name. */
export async function installRights(kubeconfig: string, release: string, values: ValueSet): Promise<InstalledRights> {
  const [helm, { kubectl: binary }, folder] = await Promise.all([
    openHelm(),
    ensureBinaries(['kubectl']),
    temporaryFolder('rights'),
  ]);
  const kubectl = kubectlFor({ binary, kubeconfig, cache: folder.path });
  const rendered = await renderChart(helm, { ...values, fullnameOverride: release }, { release, namespace: release });
  const objects = rendered.filter(({ kind }) => OF_RIGHTS.test(kind));
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: release } };
  const applying = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
  outputOf(await kubectl(applying, { stdin: asList([namespace, ...objects]) }));
  return {
    objects,
    kubectl,
    open: async role => connect({ kubeconfig: await kubeconfigOf({ kubectl }, `${release}-${role}`, release) }),
  };
}

const RULES_REVIEWS: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectRulesReview',
  plural: 'selfsubjectrulesreviews',
  namespaced: false,
};

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/**
 * Returns one line for each verb of each resource, such as `patch sluice.dev/blocks` or `get /secrets only root-key`.
 */
export function linesOf(rules: readonly Rule[]): string[] {
  const lines = rules.flatMap(({ apiGroups = [], resources = [], resourceNames = [''], verbs }) =>
    apiGroups.flatMap(group =>
      resources.flatMap(resource =>
        resourceNames.flatMap(name =>
          verbs.map(verb => `${verb} ${group}/${resource}${name === '' ? '' : ` only ${name}`}`),
        ),
      ),
    ),
  );
  return [...new Set(lines)].toSorted();
}

/** Returns the output of `kubectl auth can-i --list` for the resources in a namespace. */
export async function listRights(client: KubeClient, namespace: string): Promise<string[]> {
  const { status } = await client.create<{ status: { resourceRules: readonly Rule[]; incomplete: boolean } }>(
    RULES_REVIEWS,
    { name: '' },
    { spec: { namespace } },
  );
  if (status.incomplete) throw new Error('the list is incomplete');
  return linesOf(status.resourceRules);
}
