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
    `\`kubectl apply -f config/rbac\` grants the rights on this page and nothing else. Apply the kinds (\`crds\`) and the namespace \`${SYSTEM_NAMESPACE}\` first. The admission policies need Kubernetes 1.30 or newer. Only the controller writes statuses.`,
    '## For people and their tools',
    'You bind these roles. Give a team its workspace, an auditor read access to it, and the platform team the cluster:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    "With `sluice-tenant-view` alone, `kubectl get waas` reports that integrations are forbidden, and prints the rest. `sluice-admin` cannot delete RoleBindings, because RBAC cannot limit it to its own; empty their `subjects` instead. To give an existing namespace to a Workspace, you need the right to label namespaces. The roles are not aggregated into Kubernetes' `edit` and `view`: those grant no access to Sluice.",
    '## For the roles of Sluice',
    table(
      ['Service account', 'Token in its pods', 'Purpose'],
      SERVICE_ACCOUNTS.map(({ name, token, description }) => [`\`${name}\``, token ? 'yes' : 'no', description]),
    ),
    ...ofAccounts.flatMap(describeRole),
    '`sluice all` runs every role in one process and is for evaluation. It needs the rights of the controller and of the facade, which the policies below separate. Give it a separate service account, and bind both ClusterRoles and the Role to it.',
    '## Limits beyond RBAC',
    'Each row is a ValidatingAdmissionPolicy with a binding that denies. Each policy limits one service account; it does not apply to administrators and tenants.',
    table(['Policy', 'Limits', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    "Within these limits, the service account of the facade reaches all workspaces. The facade's code limits a caller of `/waas` to its own, by the owners of Workspaces and Accounts. The controller can list all Secrets of the cluster: RBAC does not know types of Secrets, so a watch for ingress keys and signing secrets is a watch for all Secrets. Of these it keeps digests and mirrors. Of all other Secrets it requests only the metadata. It reads a Secret if a header of a Subscription in the same namespace names it, and keeps the named fields. So anyone with write access to Subscriptions in a namespace can send its Secrets to an endpoint (as anyone who can create pods can mount them), except Secrets of the types " +
      `${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. A header that you set over \`/waas\` cannot refer to a Secret.`,
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
