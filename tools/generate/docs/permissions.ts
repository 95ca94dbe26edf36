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

/** docs/permissions.md: who may what. */
export function renderPermissions(): string {
  const forUsers = SHIPPED_ROLES.filter(({ serviceAccount }) => serviceAccount === undefined);
  const ofAccounts = SHIPPED_ROLES.filter(({ serviceAccount }) => serviceAccount !== undefined);
  return [
    '# Permissions',
    `\`kubectl apply -f config/rbac\` grants what this page says and nothing else. The kinds (\`crds\`) and the namespace \`${SYSTEM_NAMESPACE}\` come first; the admission policies need Kubernetes 1.30 or newer. Statuses are written by the controller alone.`,
    '## For people and their tools',
    'The roles are bound by you. A tenant gets its namespace, and a look at it is given without write access:',
    '```sh\nkubectl create rolebinding acme-team -n acme --clusterrole=sluice-tenant-edit --group=acme-team\nkubectl create rolebinding acme-audit -n acme --clusterrole=sluice-tenant-view --user=auditor\nkubectl create clusterrolebinding sluice-platform --clusterrole=sluice-admin --group=platform\n```',
    ...forUsers.flatMap(describeRole),
    "`kubectl get waas` of somebody who has `sluice-tenant-view` only says that integrations are forbidden, and prints the rest. `sluice-admin` does not delete RoleBindings, because RBAC cannot keep it from those of others: it empties their `subjects`. A namespace that exists already is given to a Workspace by whoever may label namespaces. The roles are not part of Kubernetes' own `edit` and `view`: who has those in a namespace has nothing of Sluice there.",
    '## For the roles of Sluice',
    table(
      ['Service account', 'Token in its pods', 'What for'],
      SERVICE_ACCOUNTS.map(({ name, token, description }) => [`\`${name}\``, token ? 'yes' : 'no', description]),
    ),
    ...ofAccounts.flatMap(describeRole),
    '`sluice all`, everything in one process, is for trying out: it needs the rights of the controller and of the facade, which the policies below keep apart. Give it a service account of its own that both ClusterRoles and the Role are bound to.',
    '## What RBAC cannot say',
    'A ValidatingAdmissionPolicy each, with a binding that denies. They hold one service account; administrators and tenants are not asked.',
    table(['Policy', 'Holds', 'Rules'], SHIPPED_POLICIES.map(policyRow)),
    "Within this, the service account of the facade reaches all tenants: that a caller of `/waas` reaches only its own is decided by the facade's code, by the owners of Workspaces and Accounts. The controller can list all Secrets of the cluster: RBAC knows no types of Secrets, and a watch for those with ingress keys and signing secrets is a watch for all of them. Of these it keeps digests and mirrors. Of all others it asks for the metadata only; it reads a Secret when a header of a Subscription in the same namespace names it, and keeps the fields that are named. So whoever may write Subscriptions in a namespace can send the Secrets there to an endpoint (as whoever may make pods can mount them), but none of the types " +
      `${NEVER_SENT_SECRET_TYPES.map(type => `\`${type}\``).join(', ')}. Over \`/waas\` no Secret can be named.`,
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
