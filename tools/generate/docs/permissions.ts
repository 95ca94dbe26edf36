import { NEVER_SENT_SECRET_TYPES } from '../../../src/api/well-known.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import { escapeMarkup, type Row, table } from '../markdown.ts';
import { SHIPPED_POLICIES } from '../rbac/admission.ts';
import {
  type PolicyRule,
  rolesOfAccount,
  rolesOfUsers,
  type ShippedRole,
  serviceAccountsOf,
} from '../rbac/permissions.ts';
import { ROLE_DEFINITIONS } from '../roles.ts';

/** Renders docs/permissions.md: the shipped roles and admission policies. */
export function renderPermissions(): string {
  const forUsers = rolesOfUsers(DEFAULT_INSTALLATION);
  const ofAccounts = ROLE_DEFINITIONS.flatMap(role => rolesOfAccount(role, DEFAULT_INSTALLATION));
  return [
    '# Permissions',
    `All permissions listed below are granted when [installing](install.md) Sluice. The Helm chart uses the name of the release instead of \`sluice\`. You can also grant them on their own by running \`kubectl apply -f config/rbac\`. In this case, you'll first need to apply the CustomResourceDefinitions in \`crds\` and create the \`${DEFAULT_INSTALLATION.namespace}\` namespace. Kubernetes 1.30 or later is required for the admission policies. Object status can only be written by the controller.`,
    '## Roles for users and tools',
    'These roles are meant to be bound to your own users. For instance, to give a team access to its workspace, an auditor read access to the same workspace, and the platform team access to the whole cluster:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    "For users with no role other than `sluice-tenant-view`, `kubectl get waas` will show an error for integrations while listing all other resources. RoleBindings can't be deleted by `sluice-admin`, because there's no way in RBAC to limit this permission to specific RoleBindings. A workaround is to remove all `subjects` from the RoleBinding. Using an existing namespace for a Workspace requires permission to label namespaces. Note that the Kubernetes roles `edit` and `view` do not grant any access to Sluice, since our roles aren't aggregated into them.",
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
    'When evaluating Sluice, you may want to run all roles in a single process using `sluice all`. Such a process needs the combined permissions of the controller and facade, which the policies below do not allow for either service account. In this case, create a separate service account and bind both ClusterRoles as well as the Role to it, or use the Helm chart with `mode=all`.',
    '## Limits beyond RBAC',
    'Further limits are enforced by ValidatingAdmissionPolicies, each with a binding that denies requests. Every policy is specific to a single service account, so administrators and tenants are not affected.',
    table(['Policy', 'Limits', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    `Within these limits, the facade's service account can access all workspaces. To ensure that callers of \`/waas\` only get access to their own objects, the facade checks the owners of Workspaces and Accounts. The controller, meanwhile, can list all Secrets in the cluster. It needs this permission to watch ingress keys and signing secrets, because RBAC does not distinguish between types of Secrets. Only digests and mirrors of these Secrets are kept, and for all others just the metadata is requested. If a Subscription header refers to a Secret in the same namespace, the controller will read that Secret and keep the fields being referred to. This means that anyone with write access to Subscriptions is able to send the namespace's Secrets to an endpoint, much like anyone who can create pods is able to mount them. The exception to this are Secrets of the types ${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. Headers set through \`/waas\` cannot refer to Secrets at all.`,
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

function policyRow({ name, role, validations }: (typeof SHIPPED_POLICIES)[number]): Row {
  const rules = validations.map(({ message }) => message);
  const { prefix, accountOf } = DEFAULT_INSTALLATION;
  return [`\`${prefix}-${name}\``, `\`${accountOf(role)}\``, rules.join('; ')];
}
