import { GROUP } from '../../../src/api/group-version.ts';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { NEVER_SENT_SECRET_TYPES } from '../../../src/api/well-known.ts';
import { RECEIVING_PREFIX } from '../../../src/core/ids/invitation-names.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import { rolesOfUninstall } from '../manifests/uninstall.ts';
import { escapeMarkup, type Row, table } from '../markdown.ts';
import { SHIPPED_POLICIES } from '../rbac/admission.ts';
import {
  type PolicyRule,
  roleForBindings,
  rolesOfAccount,
  rolesOfUsers,
  type ShippedRole,
  secretsRoleOf,
  serviceAccountsOf,
} from '../rbac/permissions.ts';
import { ROLE_DEFINITIONS } from '../roles.ts';

const NAMESPACED = `By default, the ClusterRole \`${secretsRoleOf(DEFAULT_INSTALLATION)}\` is bound in the whole cluster, because the controller watches the Secrets of all workspaces. To limit it to the namespaces of workspaces, set \`secrets.access=namespaced\` in the Helm chart, or add the component \`config/components/namespaced-secrets\` to your overlay. The controller then creates a RoleBinding with the name of the ClusterRole in the namespace of each workspace, and removes it when the workspace is deleted. If you remove or change such a RoleBinding, the controller creates it again within seconds. It needs the ClusterRole below, and the policy \`${DEFAULT_INSTALLATION.prefix}-controller-bindings\` makes sure that it cannot bind itself anywhere else. If you would rather not grant this, remove the ClusterRoleBinding \`${roleForBindings(DEFAULT_INSTALLATION).name}\` and create the RoleBindings yourself. In this case, it can take up to six minutes until the controller notices that one was removed, because Kubernetes only checks permissions when a watch begins. If the Secrets of a workspace cannot be read, it reports the reason \`SecretsForbidden\`, and other workspaces are not affected. Each namespace needs its own watch, so we recommend this for up to 200 workspaces.`;

/** How to keep `sluice-admin` from the names of other software. A test applies the objects. */
const NAMES_OF_WORKSPACES = [
  '`sluice-admin` can also create a Workspace whose namespace does not exist yet. The controller then creates the namespace, so `sluice-admin` has the Secrets of this namespace within reach. Do not install other software into the namespace of a workspace. To keep names free for other software, reserve a prefix for workspaces, here `ws-`. This policy does not limit users who can create namespaces anyway. Workspaces named `partner-*` are created when invitations are accepted:',
  `\`\`\`yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: workspace-names}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [${GROUP}], apiVersions: ['*'], operations: [CREATE], resources: [${KINDS.Workspace.plural}]}
  matchConditions:
    - name: cannot-create-namespaces
      expression: "!authorizer.group('').resource('namespaces').check('create').allowed()"
  validations:
    - expression: object.metadata.name.startsWith('ws-') || object.metadata.name.startsWith('${RECEIVING_PREFIX}')
      message: the name of a Workspace must start with ws-
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: workspace-names}
spec: {policyName: workspace-names, validationActions: [Deny]}
\`\`\``,
];

/** Renders docs/permissions.md: the shipped roles and admission policies. */
export function renderPermissions(): string {
  const forUsers = rolesOfUsers(DEFAULT_INSTALLATION);
  const ofAccounts = ROLE_DEFINITIONS.flatMap(role => rolesOfAccount(role, DEFAULT_INSTALLATION));
  return [
    '# Permissions',
    `All permissions listed below are granted when [installing](install.md) Sluice. The Helm chart uses the name of the release instead of \`sluice\`. You can also grant them on their own by running \`kubectl apply -f config/rbac\`. In this case, you'll first need to apply the CustomResourceDefinitions in \`crds\` and create the \`${DEFAULT_INSTALLATION.namespace}\` namespace. Kubernetes 1.30 or later is required for the admission policies. Object status can only be written by the controller.`,
    '## Roles for users and tools',
    'These roles are meant to be bound to your own users. For instance, to give a team access to its workspace, an auditor read access to the same workspace, and the platform team access to the whole cluster:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-secrets -n acme --clusterrole=sluice-tenant-secrets --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    "Only bind `sluice-tenant-secrets` to users who need to create ingress keys or headers as Secrets, or to read signing secrets. Note that users with `sluice-tenant-edit` can still send the namespace's Secrets to an endpoint (see [below](#limits-beyond-rbac)).",
    '`sluice-admin` cannot read Secrets. It can bind the roles for tenants to anybody, including itself, but only in the namespaces of workspaces: the policy `sluice-tenant-bindings` denies all other RoleBindings to these roles, regardless of who creates them. In a namespace without the label `sluice.dev/workspace=<name of the namespace>`, subjects can only be removed from existing RoleBindings. `sluice-admin` cannot add the label, because it has no permission to change namespaces. The policy does not apply to ClusterRoleBindings, which `sluice-admin` cannot create.',
    ...NAMES_OF_WORKSPACES,
    "Create the Workspace before the RoleBindings of its team, and wait for the namespace. If you create the namespace yourself, add the label to it. Using an existing namespace for a Workspace requires permission to label namespaces. RoleBindings can't be deleted by `sluice-admin`, because there's no way in RBAC to limit this permission to specific RoleBindings. A workaround is to remove all `subjects` from the RoleBinding.",
    'For users with no role other than `sluice-tenant-view`, `kubectl get waas` will show an error for integrations while listing all other resources. Note that the Kubernetes roles `edit` and `view` do not grant any access to Sluice, unless you set `rbac.aggregate` in the Helm chart. The Kubernetes role `edit` includes Secrets, so `sluice-tenant-secrets` is never aggregated.',
    '## Roles of the Sluice components',
    table(
      ['Service account', 'Token mounted in its pods', 'Purpose'],
      serviceAccountsOf(DEFAULT_INSTALLATION).map(({ name, token, description }) => [
        `\`${name}\``,
        token ? 'yes' : 'no',
        description,
      ]),
    ),
    ...ofAccounts.flatMap(describeRole),
    '### Secrets by namespace',
    NAMESPACED,
    ...describeRole(roleForBindings(DEFAULT_INSTALLATION)),
    'When evaluating Sluice, you may want to run all roles in a single process. The Helm chart does this with `mode=all`: the service account `sluice-all` is then bound to the roles of both the controller and the facade, and most of the policies below apply to it. `sluice-all-objects` replaces the two policies that would not let both of them work. If you run `sluice all` without the chart, you need to create such a service account and its policies yourself.',
    '## Uninstalling',
    'The service account `sluice-uninstall` and these permissions only exist while Sluice is [being uninstalled](install.md#uninstall).',
    ...rolesOfUninstall(DEFAULT_INSTALLATION).flatMap(describeRole),
    '## Limits beyond RBAC',
    'Further limits are enforced by ValidatingAdmissionPolicies, each with a binding that denies requests. Policies are specific to the service accounts of Sluice, so administrators and tenants are not affected. The exception is `sluice-tenant-bindings`, which limits RoleBindings to the roles for tenants for everybody, and no other RoleBindings.',
    table(['Policy', 'Limits', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    `Within these limits, the facade's service account can access all workspaces. To ensure that callers of \`/waas\` only get access to their own objects, the facade checks the owners of Workspaces and Accounts. It can only change the owners of accounts named \`free-*\`, which it creates when an invitation is accepted, so that partners can add [members](rest.md#accounts). Whoever takes over the facade could make themselves an owner of those accounts, but not of any account that you have created. Check the owners of \`free-*\` accounts after such an incident. The controller, meanwhile, can list all Secrets in the cluster, unless it reads them [by namespace](#secrets-by-namespace). It needs this permission to watch ingress keys and signing secrets, because RBAC does not distinguish between types of Secrets. The controller only keeps digests and mirrors of these Secrets. For all other Secrets, it requests the metadata (by namespace, it reads all Secrets, but only keeps their names and versions). If a Subscription header refers to a Secret in the same namespace, the controller will read that Secret and keep the fields being referred to. This means that anyone with write access to Subscriptions is able to send the namespace's Secrets to an endpoint, much like anyone who can create pods is able to mount them. The exception to this are Secrets of the types ${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. Headers set through \`/waas\` cannot refer to Secrets at all.`,
  ].join('\n\n');
}

function describeRole({ name, namespace, description, rules }: ShippedRole): string[] {
  const kind = namespace === undefined ? 'ClusterRole' : `Role in \`${namespace}\``;
  return [
    `### ${name}${namespace === undefined ? '' : `, in ${namespace}`}`,
    `${kind}. ${escapeMarkup(description)}`,
    table(['Resources', 'Verbs'], rules.map(ruleRow)),
  ];
}

function ruleRow({ apiGroups, resources, resourceNames, verbs }: PolicyRule): Row {
  const group = apiGroups.join() === '' ? '' : ` (\`${apiGroups.join()}\`)`;
  const only = resourceNames === undefined ? '' : `, only \`${resourceNames.join('`, `')}\``;
  return [`\`${resources.join('`, `')}\`${group}${only}`, verbs.join(', ')];
}

function policyRow({ name, role, apart, validations }: (typeof SHIPPED_POLICIES)[number]): Row {
  const rules = validations.map(({ message }) => message);
  const { prefix, accountOf } = DEFAULT_INSTALLATION;
  const accounts = apart || role === 'all' ? [role] : [role, 'all' as const];
  const limited = role === 'everybody' ? role : accounts.map(each => `\`${accountOf(each)}\``).join(', ');
  return [`\`${prefix}-${name}\``, limited, rules.join('; ')];
}
