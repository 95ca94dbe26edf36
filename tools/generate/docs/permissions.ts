import { NEVER_SENT_SECRET_TYPES } from '../../../src/api/well-known.ts';
import { escapeMarkup, type Row, table } from '../markdown.ts';
import { SHIPPED_POLICIES } from '../rbac/admission.ts';
import {
  type PolicyRule,
  SERVICE_ACCOUNTS,
  SHIPPED_ROLES,
  type ShippedRole,
  SYSTEM_NAMESPACE,
} from '../rbac/permissions.ts';

/** Renders docs/permissions.md: the shipped roles and admission policies. */
export function renderPermissions(): string {
  const forUsers = SHIPPED_ROLES.filter(({ serviceAccount }) => serviceAccount === undefined);
  const ofAccounts = SHIPPED_ROLES.filter(({ serviceAccount }) => serviceAccount !== undefined);
  return [
    '# Permissions',
    `To grant the permissions on this page, run \`kubectl apply -f config/rbac\`. Before you do this, apply the CustomResourceDefinitions in \`crds\` and create the namespace \`${SYSTEM_NAMESPACE}\`. The admission policies require Kubernetes 1.30 or later. Only the controller can write the status of an object.`,
    '## Roles for users and tools',
    'You can bind the following roles to your users. For example, you can give a team access to its workspace, give an auditor read access to the workspace, and give the platform team access to the cluster:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    'If a user only has the role `sluice-tenant-view`, `kubectl get waas` shows an error for integrations and lists all other resources. The role `sluice-admin` cannot delete RoleBindings because RBAC cannot limit this permission to specific RoleBindings. Instead, you can remove all `subjects` from a RoleBinding. To use an existing namespace for a Workspace, you need permission to label namespaces. The roles are not aggregated into the Kubernetes roles `edit` and `view`, so these roles do not grant access to Sluice.',
    '## Roles of the Sluice components',
    table(
      ['Service account', 'Token mounted in its pods', 'Purpose'],
      SERVICE_ACCOUNTS.map(({ name, token, description }) => [`\`${name}\``, token ? 'yes' : 'no', description]),
    ),
    ...ofAccounts.flatMap(describeRole),
    'You can use `sluice all` to run all roles in one process for evaluation. This process needs the permissions of both the controller and the facade, and the policies below do not allow a service account to have both. To run it, create a separate service account, and bind both ClusterRoles and the Role to it.',
    '## Limits beyond RBAC',
    'The following table lists the ValidatingAdmissionPolicies and their rules. Each policy has a binding that denies requests. Each policy applies to one service account, and it does not apply to administrators and tenants.',
    table(['Policy', 'Limits', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    `Within these limits, the service account of the facade can access all workspaces. The facade checks the owners of Workspaces and Accounts, so that callers of \`/waas\` can only access their own objects. The controller can list all Secrets in the cluster. It needs this permission to watch ingress keys and signing secrets, because RBAC does not support types of Secrets. The controller only keeps digests and mirrors of these Secrets. For all other Secrets, it only requests the metadata. If a header of a Subscription refers to a Secret in the same namespace, the controller reads the Secret and keeps the fields that the header refers to. This means that users with write access to Subscriptions can send the Secrets of the namespace to an endpoint. In the same way, users who can create pods can mount these Secrets. This does not apply to Secrets of the types ${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. If you set a header with \`/waas\`, it cannot refer to a Secret.`,
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

function policyRow({ name, serviceAccount, validations }: (typeof SHIPPED_POLICIES)[number]): Row {
  const rules = validations.map(({ message }) => message);
  return [`\`${name}\``, `\`${serviceAccount}\``, rules.join('; ')];
}
