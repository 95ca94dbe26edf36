import { GROUP } from '../../../src/api/group-version.ts';
import { AccountSpec } from '../../../src/api/kinds/account.ts';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { WorkspaceSpec } from '../../../src/api/kinds/workspace.ts';
import {
  FINALIZER,
  INVITATION_SECRET_TYPE,
  PAUSED_ANNOTATION,
  SIGNING_SECRET_TYPE,
} from '../../../src/api/well-known.ts';
import { SYSTEM_NAMESPACE } from './permissions.ts';

type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

/** What RBAC cannot say: which objects and fields one service account may write. Nobody else is held by it. */
export interface ShippedPolicy {
  readonly name: string;
  readonly description: string;
  readonly serviceAccount: string;
  readonly apiGroup: string;
  /** Without subresources. */
  readonly resources: readonly string[];
  readonly operations: readonly Operation[];
  /** CEL over `object` and `oldObject` (null when there is none), and what is read when it is false. */
  readonly validations: readonly { readonly expression: string; readonly message: string }[];
}

const FACADE = { serviceAccount: 'sluice-facade', apiGroup: GROUP };
const CONTROLLER = { serviceAccount: 'sluice-controller', apiGroup: GROUP };
const everyKind = Object.values(KINDS).map(({ plural }) => plural);

/** What an account is that says nothing about it. */
const { plan, includedTokens } = AccountSpec.parse({
  owners: [{ issuer: 'https://issuer.example', subject: 'anybody', role: 'Owner' }],
});

/** Of a Workspace that is there, the facade changes these. A field that is added to the kind is closed to it. */
const OPEN_FIELDS = ['producer', 'ingressKeys'];
const closedFields = Object.keys(WorkspaceSpec.shape).filter(field => !OPEN_FIELDS.includes(field));

const ownerReferencesKept = `object.metadata.?ownerReferences.orValue([]) == (oldObject == null ? [] : oldObject.metadata.?ownerReferences.orValue([]))`;

/** In the order in which they are applied: who waits until the last one is in force has all of them. */
export const SHIPPED_POLICIES: readonly ShippedPolicy[] = [
  {
    ...CONTROLLER,
    name: 'sluice-controller-objects',
    description: 'The controller never writes a spec. Of an object it changes its own finalizer, besides the status.',
    resources: everyKind,
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: 'oldObject != null && object.spec == oldObject.spec',
        message: 'the controller does not write a spec',
      },
      {
        expression: `oldObject != null && object.metadata.?finalizers.orValue([]).filter(name, name != '${FINALIZER}') == oldObject.metadata.?finalizers.orValue([]).filter(name, name != '${FINALIZER}')`,
        message: `the controller sets and removes the finalizer ${FINALIZER} and no other`,
      },
      // The garbage collector deletes an object whose owner does not exist.
      { expression: ownerReferencesKept, message: 'the controller gives no object of the kinds to an owner' },
    ],
  },
  {
    ...CONTROLLER,
    name: 'sluice-controller-deletions',
    description: 'The controller deletes an Activation only after it was revoked.',
    resources: [KINDS.Activation.plural],
    operations: ['DELETE'],
    validations: [
      {
        expression: 'oldObject.spec.?revoked.orValue(false) == true',
        message: 'the controller deletes revoked activations only',
      },
    ],
  },
  {
    ...CONTROLLER,
    name: 'sluice-controller-secrets',
    // Else it could make itself a token of any service account.
    description: 'The controller writes Secrets of its own types only.',
    apiGroup: '',
    resources: ['secrets'],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: `object.?type.orValue('') in ['${SIGNING_SECRET_TYPE}', '${INVITATION_SECRET_TYPE}']`,
        message: `the controller writes Secrets of the types ${SIGNING_SECRET_TYPE} and ${INVITATION_SECRET_TYPE} only`,
      },
    ],
  },
  {
    ...FACADE,
    name: 'sluice-facade-metadata',
    description:
      'The facade leaves finalizers and owners of all objects alone: with them it could delete, or keep, what it may not.',
    resources: everyKind,
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression:
          'object.metadata.?finalizers.orValue([]) == (oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([]))',
        message: 'the facade does not set or remove finalizers',
      },
      { expression: ownerReferencesKept, message: 'the facade gives no object to an owner' },
    ],
  },
  {
    ...FACADE,
    name: 'sluice-facade-workspaces',
    description: `The facade creates workspaces; of an existing one it changes spec.${OPEN_FIELDS.join(' and spec.')} only.`,
    resources: [KINDS.Workspace.plural],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      ...closedFields.map(field => ({
        expression: `oldObject == null || object.spec.?${field} == oldObject.spec.?${field}`,
        message: `the facade does not change spec.${field} of a workspace`,
      })),
      {
        expression: `object.metadata.?annotations[?'${PAUSED_ANNOTATION}'] == (oldObject == null ? optional.none() : oldObject.metadata.?annotations[?'${PAUSED_ANNOTATION}'])`,
        message: 'the facade does not pause workspaces',
      },
    ],
  },
  {
    ...FACADE,
    name: 'sluice-facade-accounts',
    description: `The facade creates accounts of the plan ${plan} with ${includedTokens} included tokens, and changes none.`,
    resources: [KINDS.Account.plural],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: `oldObject != null || (object.spec.plan == '${plan}' && object.spec.includedTokens == ${includedTokens})`,
        message: `the facade creates accounts of the plan ${plan} with ${includedTokens} included tokens only`,
      },
      {
        expression: 'oldObject == null || object.spec == oldObject.spec',
        message: 'the facade does not change accounts',
      },
    ],
  },
];

/** The user name of a service account of ours. */
export function userNameOf(serviceAccount: string): string {
  return `system:serviceaccount:${SYSTEM_NAMESPACE}:${serviceAccount}`;
}
