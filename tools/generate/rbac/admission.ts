import { GROUP } from '../../../src/api/group-version.ts';
import { AccountSpec } from '../../../src/api/kinds/account.ts';
import { LIMIT_NAMES } from '../../../src/api/kinds/account-limits.ts';
import { IntegrationSpec } from '../../../src/api/kinds/integration.ts';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { WorkspaceSpec } from '../../../src/api/kinds/workspace.ts';
import {
  FINALIZER,
  INVITATION_SECRET_TYPE,
  PAUSED_ANNOTATION,
  SIGNING_SECRET_TYPE,
  WORKSPACE_LABEL,
} from '../../../src/api/well-known.ts';
import type { Role } from '../../../src/config/config.ts';
import { FREE_ACCOUNT_PATTERN, RECEIVING_PREFIX } from '../../../src/core/ids/invitation-names.ts';
import { DEFAULT_LIMITS } from '../../../src/core/limits/limits.ts';
import type { Installation } from '../installation.ts';
import { IN_WORKSPACE, POLICIES_FOR_EVERYBODY } from './policies-for-everybody.ts';

type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

/**
 * A policy that RBAC cannot express. It limits the objects and fields that one service account or everybody may write.
 */
export interface ShippedPolicy {
  /** The name without the installation's prefix. */
  readonly name: string;
  readonly description: string;
  /**
   * The role whose service account is limited, `all` for a service account that the controller and the facade share, or
   * everybody.
   */
  readonly role: Role | 'all' | 'everybody';
  /** Returns a CEL expression for the affected requests, for a policy that applies to all users. */
  readonly concerns?: (installation: Pick<Installation, 'prefix'>) => string;
  /**
   * True if a shared service account uses the policy `all-objects` instead because the other role requires more
   * permissions.
   */
  readonly apart?: true;
  /** True if the policy is only required if Secrets are read by namespace. */
  readonly namespacedSecrets?: true;
  readonly apiGroup: string;
  /** The resources, without subresources. */
  readonly resources: readonly string[];
  /** The names of the affected objects. By default, all objects are affected. */
  readonly resourceNames?: readonly string[];
  readonly operations: readonly Operation[];
  /**
   * A CEL expression that uses `object` and `oldObject` (null if there is none), and the message if its result is
   * false.
   */
  readonly validations: readonly { readonly expression: string; readonly message: string }[];
}

const FACADE = { role: 'facade', apiGroup: GROUP } as const;
const CONTROLLER = { role: 'controller', apiGroup: GROUP } as const;
const everyKind = Object.values(KINDS).map(({ plural }) => plural);

/** An account's defaults. */
const { plan, includedTokens } = AccountSpec.parse({
  owners: [{ issuer: 'https://issuer.example', subject: 'anybody', role: 'Owner' }],
});

/**
 * True if all limits of a new account are within the defaults of its plan. The facade can lower limits, but not raise
 * them.
 */
const limitsOnlyLowered = LIMIT_NAMES.map(
  name => `object.spec.?limits.?${name}.orValue(0) <= ${DEFAULT_LIMITS[plan][name] ?? 0}`,
).join(' && ');

/**
 * The fields of an existing Workspace that the facade can change. New fields of the kind cannot be changed by default.
 */
const OPEN_FIELDS = ['producer', 'ingressKeys'];
/** The fields of a new Workspace that the facade can set. */
const NEW_FIELDS = ['account', 'instance'];
/** The fields of a new Integration that the facade can set. */
const INVITED_FIELDS = ['invitedEmail'];
const fieldsExcept = (open: readonly string[], { shape }: { readonly shape: object } = WorkspaceSpec) =>
  Object.keys(shape).filter(field => !open.includes(field));

/** True if an Account has no changes in fields other than owners. */
const ownersOnly = Object.keys(AccountSpec.shape)
  .filter(field => field !== 'owners')
  .map(field => `object.spec.?${field} == oldObject.spec.?${field}`)
  .join(' && ');

/** Compares the finalizers of other managers. A new object must not have any of them. */
const otherFinalizersKept = (() => {
  const others = (object: string) => `${object}.metadata.?finalizers.orValue([]).filter(name, name != '${FINALIZER}')`;
  return `${others('object')} == (oldObject == null ? [] : ${others('oldObject')})`;
})();

const ownerReferencesKept = `object.metadata.?ownerReferences.orValue([]) == (oldObject == null ? [] : oldObject.metadata.?ownerReferences.orValue([]))`;

/** The policies in the order in which they are applied. When the last policy is in force, all policies are. */
export const SHIPPED_POLICIES: readonly ShippedPolicy[] = [
  ...POLICIES_FOR_EVERYBODY,
  {
    ...CONTROLLER,
    apart: true,
    name: 'controller-objects',
    description:
      "The controller cannot change an object's spec. It can only change the status and the Sluice finalizer.",
    resources: everyKind,
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: 'oldObject != null && object.spec == oldObject.spec',
        message: 'the controller cannot change the spec of an object',
      },
      {
        expression: otherFinalizersKept,
        message: `the controller can only set and remove the ${FINALIZER} finalizer`,
      },
      // If the owner does not exist, the garbage collector deletes the object.
      { expression: ownerReferencesKept, message: 'the controller cannot change the owners of an object' },
    ],
  },
  {
    ...CONTROLLER,
    name: 'controller-deletions',
    description: 'The controller can only delete an Activation after the Activation has been revoked.',
    resources: [KINDS.Activation.plural],
    operations: ['DELETE'],
    validations: [
      {
        expression: 'oldObject.spec.?revoked.orValue(false) == true',
        message: 'the controller can only delete revoked activations',
      },
    ],
  },
  {
    ...CONTROLLER,
    name: 'controller-secrets',
    // Otherwise, the controller could create a token for any service account.
    description: 'The controller can only write Secrets of its own types.',
    apiGroup: '',
    resources: ['secrets'],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: `object.?type.orValue('') in ['${SIGNING_SECRET_TYPE}', '${INVITATION_SECRET_TYPE}']`,
        message: `the controller can only write Secrets of the types ${SIGNING_SECRET_TYPE} and ${INVITATION_SECRET_TYPE}`,
      },
    ],
  },
  {
    ...CONTROLLER,
    name: 'controller-quotas',
    description: "The controller can only write quotas in a workspace's namespace.",
    apiGroup: '',
    resources: ['resourcequotas'],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: IN_WORKSPACE,
        message: `the controller can only write quotas in namespaces with the ${WORKSPACE_LABEL}=<name of the namespace> label`,
      },
    ],
  },
  {
    ...CONTROLLER,
    namespacedSecrets: true,
    name: 'controller-bindings',
    // Otherwise, the controller could read the Secrets of any namespace.
    description: "The controller can only bind the ClusterRole for Secrets to itself, in a workspace's namespace.",
    apiGroup: 'rbac.authorization.k8s.io',
    resources: ['rolebindings'],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: IN_WORKSPACE,
        message: `the controller can only bind roles in namespaces with the ${WORKSPACE_LABEL}=<name of the namespace> label`,
      },
      {
        expression: `object.roleRef.kind == 'ClusterRole' && object.roleRef.name == object.metadata.name`,
        message: 'the controller can only bind the ClusterRole that has the name of the RoleBinding',
      },
      {
        expression: `object.?subjects.orValue([]).all(subject, subject.kind == 'ServiceAccount' && 'system:serviceaccount:' + subject.namespace + ':' + subject.name == request.userInfo.username)`,
        message: 'the controller can only bind roles to its own service account',
      },
    ],
  },
  {
    ...FACADE,
    apart: true,
    name: 'facade-metadata',
    description:
      'The facade cannot change finalizers or owners, because they could be used to delete or keep objects without permission.',
    resources: everyKind,
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression:
          'object.metadata.?finalizers.orValue([]) == (oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([]))',
        message: 'the facade cannot change finalizers',
      },
      { expression: ownerReferencesKept, message: 'the facade cannot change the owners of an object' },
    ],
  },
  {
    role: 'all',
    apiGroup: GROUP,
    name: 'all-objects',
    description:
      'A service account shared by the controller and the facade can only set and remove the Sluice finalizer and cannot change owners.',
    resources: everyKind,
    operations: ['CREATE', 'UPDATE'],
    validations: [
      { expression: otherFinalizersKept, message: `Sluice can only set and remove the ${FINALIZER} finalizer` },
      { expression: ownerReferencesKept, message: 'Sluice cannot change the owners of an object' },
    ],
  },
  {
    ...FACADE,
    name: 'facade-workspaces',
    description: `The facade can create workspaces named ${RECEIVING_PREFIX}*, with spec.${NEW_FIELDS.join(' and spec.')} only. In existing workspaces, it can only change spec.${OPEN_FIELDS.join(' and spec.')}.`,
    resources: [KINDS.Workspace.plural],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: `oldObject != null || object.metadata.name.startsWith('${RECEIVING_PREFIX}')`,
        message: `the facade can only create workspaces named ${RECEIVING_PREFIX}*`,
      },
      // Otherwise, the facade could add arbitrary owners and ingress keys that it knows.
      ...fieldsExcept(NEW_FIELDS).map(field => ({
        expression: `oldObject != null || !has(object.spec.${field})`,
        message: `the facade cannot create workspaces with spec.${field}`,
      })),
      ...fieldsExcept(OPEN_FIELDS).map(field => ({
        expression: `oldObject == null || object.spec.?${field} == oldObject.spec.?${field}`,
        message: `the facade cannot change spec.${field} of a workspace`,
      })),
      {
        expression: `object.metadata.?annotations[?'${PAUSED_ANNOTATION}'] == (oldObject == null ? optional.none() : oldObject.metadata.?annotations[?'${PAUSED_ANNOTATION}'])`,
        message: 'the facade cannot pause workspaces',
      },
    ],
  },
  {
    ...FACADE,
    name: 'facade-integrations',
    description: `The facade can only create integrations that are invitations, with spec.${INVITED_FIELDS.join(' and spec.')} only.`,
    resources: [KINDS.Integration.plural],
    operations: ['CREATE'],
    // Otherwise, the facade could grant access to a workspace that the producer has not invited.
    validations: fieldsExcept(INVITED_FIELDS, IntegrationSpec).map(field => ({
      expression: `!has(object.spec.${field})`,
      message: `the facade cannot create integrations with spec.${field}`,
    })),
  },
  {
    ...FACADE,
    name: 'facade-accounts',
    // If the facade could change the owners of other accounts, an attacker with access to the facade could permanently
    // take over any producer.
    description: `The facade can create accounts with the plan ${plan}, ${includedTokens} included tokens, and limits that do not exceed the shipped defaults of this plan. It cannot change accounts, except for the owners of those that are named like the ones it creates (free-*).`,
    resources: [KINDS.Account.plural],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: `oldObject != null || (object.spec.plan == '${plan}' && object.spec.includedTokens == ${includedTokens})`,
        message: `the facade can only create accounts with the plan ${plan} and ${includedTokens} included tokens`,
      },
      {
        expression: `oldObject == null || object.spec == oldObject.spec || (object.metadata.name.matches('${FREE_ACCOUNT_PATTERN}') && ${ownersOnly})`,
        message: 'the facade cannot change accounts, except for the owners of free-* accounts',
      },
      {
        expression: `object.spec.owners.exists(owner, owner.?role.orValue('Admin') == 'Owner')`,
        message: 'the facade cannot leave an account without an Owner',
      },
      {
        expression: `oldObject != null || (${limitsOnlyLowered})`,
        message: `the facade can only create accounts with limits up to the defaults of the plan ${plan}`,
      },
    ],
  },
];

/**
 * Returns the CEL expression for the requests affected by a policy. A policy for a service account with a different
 * name or namespace would have no effect.
 */
export function conditionOf({ role, concerns }: ShippedPolicy, installation: Installation): string {
  if (concerns !== undefined) return concerns(installation);
  const { namespace, accountOf } = installation;
  return `request.userInfo.username == 'system:serviceaccount:${namespace}:${accountOf(role)}'`;
}
