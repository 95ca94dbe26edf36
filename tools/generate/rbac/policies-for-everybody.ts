import { INSTANCE_LABEL, WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { LEASE_NAME } from '../../../src/kube/lease.ts';
import { LEASES } from '../../../src/kube/resource.ts';
import type { ShippedPolicy } from './admission.ts';
import { rolesOfTenants } from './permissions.ts';

/** True if the namespace of an object belongs to a workspace. */
export const IN_WORKSPACE = `namespaceObject.metadata.?labels[?'${WORKSPACE_LABEL}'].orValue('') == namespaceObject.metadata.name`;

/** Policies that apply to all users, and not only to the service accounts of Sluice. */
export const POLICIES_FOR_EVERYBODY: readonly ShippedPolicy[] = [
  {
    role: 'everybody',
    concerns: installation => {
      const names = rolesOfTenants(installation).map(({ name }) => `'${name}'`);
      return `object.roleRef.kind == 'ClusterRole' && object.roleRef.name in [${names.join(', ')}]`;
    },
    name: 'tenant-bindings',
    // Otherwise, a platform administrator could read the Secrets of any namespace.
    description: 'The tenant ClusterRoles can only be bound in the namespace of a workspace.',
    apiGroup: 'rbac.authorization.k8s.io',
    resources: ['rolebindings'],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        // Subjects can be removed from an older RoleBinding.
        expression: `${IN_WORKSPACE} || (oldObject != null && object.?subjects.orValue([]).all(subject, subject in oldObject.?subjects.orValue([])))`,
        message: `this ClusterRole can only be bound in the namespace of a workspace, which has the ${WORKSPACE_LABEL}=<name of the namespace> label; create a Workspace with the name of the namespace first`,
      },
    ],
  },
  {
    role: 'everybody',
    concerns: () => `object.metadata.?labels[?'${INSTANCE_LABEL}'].hasValue()`,
    name: 'leases',
    // Otherwise, users who can create Leases in a namespace could keep the controller from leading.
    description: 'The Lease of a controller can only be created or changed by users who can list it in all namespaces.',
    apiGroup: LEASES.group,
    resources: [LEASES.plural],
    resourceNames: [LEASE_NAME],
    operations: ['CREATE', 'UPDATE'],
    validations: [
      {
        expression: `authorizer.group('${LEASES.group}').resource('${LEASES.plural}').name(object.metadata.name).check('list').allowed()`,
        message: `a Lease with this name and the ${INSTANCE_LABEL} label belongs to the controller of an installation; only users who can list Leases with this name in all namespaces can create or change it`,
      },
    ],
  },
];
