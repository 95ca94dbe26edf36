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

const NAMESPACED = [
  `By default, the controller can read the Secrets in all namespaces, because the ClusterRole \`${secretsRoleOf(DEFAULT_INSTALLATION)}\` is bound in the whole cluster. To limit it to workspace namespaces, set \`secrets.access=namespaced\` in the Helm chart or add the component \`config/components/namespaced-secrets\` to your overlay. We recommend this for up to 200 workspaces since each namespace needs its own watch.`,
  `The controller then creates a RoleBinding in the namespace of each workspace. If you change or remove a RoleBinding, the controller restores it within seconds. RoleBindings are removed together with their workspace. The controller needs the ClusterRole below for them. The policy \`${DEFAULT_INSTALLATION.prefix}-controller-bindings\` keeps the controller from creating RoleBindings for itself anywhere else.`,
  `If you don't want to grant this permission, remove the ClusterRoleBinding \`${roleForBindings(DEFAULT_INSTALLATION).name}\` and create the RoleBindings yourself. The controller may then take up to six minutes to notice that a RoleBinding was removed, because Kubernetes only checks permissions when a watch starts. A workspace whose Secrets can't be read has the \`SecretsForbidden\` reason. Other workspaces are not affected.`,
  `If you return to the whole cluster, the RoleBindings remain since the controller then has no permission for them. They grant no permissions beyond those of the ClusterRoleBinding. [Uninstalling](install.md#uninstall) removes them. Before you limit the controller again, you need to remove those of previous workspaces: \`kubectl delete rolebindings --all-namespaces --field-selector metadata.name=${secretsRoleOf(DEFAULT_INSTALLATION)}\`. The controller recreates the others.`,
];

/**
 * An example for reserving the names of other software, so that `sluice-admin` cannot use them. A test applies the
 * objects.
 */
const NAMES_OF_WORKSPACES = [
  "`sluice-admin` can create a Workspace whose namespace does not exist yet. When the controller creates the namespace, `sluice-admin` can get access to its Secrets. For this reason, you should not install other software in a workspace's namespace. To reserve names for other software, require a prefix for workspaces (such as `ws-`). The policy below does not limit users who can create namespaces themselves and accepts the `partner-*` workspaces that are created when invitations are accepted:",
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
    `Use this page to give your users access to Sluice and to see what each component of Sluice is permitted to do. [Installing](install.md) Sluice creates all of these roles. In a Helm release with another name than \`sluice\`, their names begin with \`<release>-sluice\` (or only \`<release>\` if this name contains \`sluice\`). To create only the roles, apply the CustomResourceDefinitions in \`crds\`, create the \`${DEFAULT_INSTALLATION.namespace}\` namespace, and run \`kubectl apply -f config/rbac\`. Only the controller can write an object's status.`,
    '## Roles for users and tools',
    'You can bind these roles to your own users. For example, you can give a team access to its workspace, an auditor read access to the same workspace, and the platform team access to the whole cluster:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-secrets -n acme --clusterrole=sluice-tenant-secrets --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    'You should only bind `sluice-tenant-secrets` to users who create ingress keys or headers as Secrets or read signing secrets. Note that users with `sluice-tenant-edit` cannot read Secrets but can send them to an endpoint (see [below](#limits-beyond-rbac)).',
    'For users with only `sluice-tenant-view`, `kubectl get waas` lists all resources except integrations. For these, it shows an error. By default, the Kubernetes roles `edit` and `view` have no permissions for Sluice. To change this, set `rbac.aggregate` in the Helm chart. `sluice-tenant-secrets` is never aggregated since `edit` includes Secrets anyway.',
    '### What sluice-admin can do',
    "`sluice-admin` cannot read Secrets. `sluice-admin` can bind the tenant roles to any user (including itself) but only in workspace namespaces. Workspace namespaces have the `sluice.dev/workspace=<name of the namespace>` label. In any other namespace, the policy `sluice-tenant-bindings` denies new subjects for these roles, whoever adds them. `sluice-admin` can't add the label because it isn't allowed to change namespaces. It isn't allowed to create ClusterRoleBindings either, because the policy does not apply to them.",
    'To give a team access, create the Workspace, wait for its namespace, and create the RoleBindings. If you create the namespace yourself, you need to add the label, which requires permission to label namespaces. To take access away, remove all `subjects` from the RoleBinding. Since RBAC cannot limit the permission to delete RoleBindings to specific ones, `sluice-admin` does not have it.',
    ...NAMES_OF_WORKSPACES,
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
    ...NAMESPACED,
    ...describeRole(roleForBindings(DEFAULT_INSTALLATION)),
    'For evaluation, you can set `mode=all` in the Helm chart to run all roles in a single process. The `sluice-all` service account is bound to the roles of both the controller and the facade and has most of the policies below. `sluice-all-objects` replaces the two policies that would stop one of these roles from working. If you run `sluice all` without the chart, you need to create a similar service account and its policies yourself.',
    '## Uninstalling',
    'The `sluice-uninstall` service account and these permissions only exist while [uninstalling](install.md#uninstall) Sluice.',
    ...rolesOfUninstall(DEFAULT_INSTALLATION).flatMap(describeRole),
    '## Limits beyond RBAC',
    'Since RBAC cannot express every limit, ValidatingAdmissionPolicies deny some requests that RBAC permits. Most policies only apply to the Sluice service accounts. `sluice-tenant-bindings` and `sluice-leases` apply to everybody who writes RoleBindings for the tenant roles or the Lease of a controller.',
    table(['Policy', 'Limits', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    '### The facade',
    'Within these limits, the service account of the facade can access all workspaces. The facade itself checks the owners of Workspaces and Accounts, so that callers of `/waas` only get access to their own objects. Whoever takes over the facade:',
    [
      'could become an owner of the accounts named `free-*` but of no account that you have created. The facade creates these accounts when invitations are accepted and changes their owners to allow partners to add [members](rest.md#accounts). After such an incident, check the owners of `free-*` accounts.',
      'could grant a workspace access to a package by creating an invitation and then setting its `spec.workspace`. The facade does the same when an invitation is accepted.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    '### Secrets',
    `The controller can list all Secrets in the cluster unless it reads them [by namespace](#secrets-by-namespace), because RBAC does not distinguish between types of Secrets. The controller only keeps the hashes of ingress keys and invitation tokens and the values of signing secrets. For all other Secrets, it only requests the metadata. If it reads Secrets by namespace, it reads them as a whole but only keeps their names and versions.`,
    `If a header of a Subscription refers to a Secret in the same namespace, the controller reads it and keeps the fields that are referred to. As a result, anyone who can write Subscriptions can send the Secrets of the namespace to an endpoint. Give this permission only to users who may know these Secrets. Sluice never sends Secrets of these types: ${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. Headers set through \`/waas\` cannot refer to Secrets at all.`,
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
