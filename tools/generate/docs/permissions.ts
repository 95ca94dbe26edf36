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

const NAMESPACED = `By default, the ClusterRole \`${secretsRoleOf(DEFAULT_INSTALLATION)}\` is bound in the whole cluster because the controller watches the Secrets of all workspaces. To limit it to workspace namespaces, set \`secrets.access=namespaced\` in the Helm chart or add the component \`config/components/namespaced-secrets\` to your overlay. In this case, the controller creates a RoleBinding for this ClusterRole in the namespace of each workspace and removes it when the workspace is deleted. If you remove or change one of these RoleBindings, the controller restores it within seconds. This requires the ClusterRole below. The policy \`${DEFAULT_INSTALLATION.prefix}-controller-bindings\` ensures that the controller can't create RoleBindings for itself in any other namespace. If you don't want to grant this permission, remove the ClusterRoleBinding \`${roleForBindings(DEFAULT_INSTALLATION).name}\` and create the RoleBindings yourself. In this case, it can take up to six minutes until the controller detects that a RoleBinding was removed because Kubernetes only checks permissions when starting a watch. If the Secrets of a workspace can't be read, the workspace has the reason \`SecretsForbidden\`, and other workspaces are not affected. We recommend this setting for up to 200 workspaces because each namespace requires its own watch.`;

/** How to reserve names of other software from `sluice-admin`. A test applies the objects. */
const NAMES_OF_WORKSPACES = [
  '`sluice-admin` can also create a Workspace whose namespace does not exist yet. In this case, the controller creates the namespace, which means that `sluice-admin` can get access to the Secrets in this namespace. Do not install any other software in the namespace of a workspace. To reserve other namespace names for other software, you can require a prefix for workspaces (`ws-` in this example). This policy does not limit users who already have permission to create namespaces. Workspaces named `partner-*` are created when invitations are accepted:',
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
    `All of the following permissions are granted when [installing](install.md) Sluice. The Helm chart uses the release name instead of \`sluice\`. To only grant the permissions, run \`kubectl apply -f config/rbac\`. In this case, you'll first need to apply the CustomResourceDefinitions in \`crds\` and create the \`${DEFAULT_INSTALLATION.namespace}\` namespace. Kubernetes 1.30 or later is required for the admission policies. Object status can only be written by the controller.`,
    '## Roles for users and tools',
    'You can bind the following roles to your own users. For example, you can give a team access to its workspace, an auditor read access to the same workspace, and the platform team access to the whole cluster:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-secrets -n acme --clusterrole=sluice-tenant-secrets --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    'You should only bind `sluice-tenant-secrets` to users who need to create ingress keys or headers as Secrets, or to read signing secrets. Note that users with the role `sluice-tenant-edit` can still send Secrets in this namespace to an endpoint (see [below](#limits-beyond-rbac)).',
    "`sluice-admin` cannot read Secrets. It can bind the tenant roles to any user, including itself, but only in workspace namespaces. The policy `sluice-tenant-bindings` denies all other RoleBindings for these roles regardless of which user creates them. If a namespace does not have the label `sluice.dev/workspace=<name of the namespace>`, you can only remove subjects from existing RoleBindings. `sluice-admin` can't add this label, because it does not have permission to change namespaces. This policy does not apply to ClusterRoleBindings, because `sluice-admin` can't create them.",
    ...NAMES_OF_WORKSPACES,
    "Create the Workspace before creating the RoleBindings for its team and wait for the namespace. If you create the namespace yourself, make sure to add this label. Using an existing namespace for a Workspace requires permission to label namespaces. `sluice-admin` can't delete RoleBindings, because RBAC can't limit this permission to specific RoleBindings. Instead, you can remove all `subjects` from the RoleBinding.",
    'For users with no role other than `sluice-tenant-view`, `kubectl get waas` will show an error for integrations while listing all other resources. Note that the Kubernetes roles `edit` and `view` do not include any permissions for Sluice unless you set `rbac.aggregate` in the Helm chart. Since the Kubernetes role `edit` includes Secrets, `sluice-tenant-secrets` is never aggregated.',
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
    'When evaluating Sluice, you may want to run all roles in a single process. When setting `mode=all` in the Helm chart, the service account `sluice-all` is bound to the roles of both the controller and the facade, and most of the following policies apply to it. The policy `sluice-all-objects` replaces the two policies that would prevent one of these roles from working. If you run `sluice all` without the chart, you need to create a similar service account and its policies yourself.',
    '## Uninstalling',
    'The service account `sluice-uninstall` and these permissions only exist while [uninstalling](install.md#uninstall) Sluice.',
    ...rolesOfUninstall(DEFAULT_INSTALLATION).flatMap(describeRole),
    '## Limits beyond RBAC',
    'ValidatingAdmissionPolicies enforce additional limits, using a binding that denies requests. Most policies only apply to the service accounts of Sluice, so administrators and tenants are not affected. The exception is `sluice-tenant-bindings`, which applies to all users who create RoleBindings for the tenant roles.',
    table(['Policy', 'Limits', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    `Within these limits, the facade's service account can access all workspaces. To ensure that callers of \`/waas\` only get access to their own objects, the facade checks the owners of Workspaces and Accounts. It can only change the owners of accounts named \`free-*\`, which it creates when an invitation is accepted, so that partners can add [members](rest.md#accounts). Whoever takes over the facade could make themselves an owner of those accounts, but not of any account that you have created. Check the owners of \`free-*\` accounts after such an incident. They could also grant a workspace access to a package, because the facade can create an invitation and then set its \`spec.workspace\`, as it does when an invitation is accepted. The controller, meanwhile, can list all Secrets in the cluster, unless it reads them [by namespace](#secrets-by-namespace). It needs this permission to watch ingress keys and signing secrets, because RBAC does not distinguish between types of Secrets. The controller only keeps digests and mirrors of these Secrets. For all other Secrets, it requests the metadata (by namespace, it reads all Secrets, but only keeps their names and versions). If a Subscription header refers to a Secret in the same namespace, the controller will read that Secret and keep the fields being referred to. This means that anyone with write access to Subscriptions is able to send the namespace's Secrets to an endpoint, much like anyone who can create pods is able to mount them. The exception to this are Secrets of the types ${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. Headers set through \`/waas\` cannot refer to Secrets at all.`,
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
