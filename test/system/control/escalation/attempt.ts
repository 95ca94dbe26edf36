/** The namespaces and names used by the attempts. */
export interface Targets {
  /** A namespace labeled as a workspace. */
  readonly workspace: string;
  /** Namespaces which do not belong to a workspace. */
  readonly foreign: readonly string[];
  /** A former workspace, which still has the RoleBinding `older`. */
  readonly former: string;
  /** A namespace without a label. */
  readonly unlabelled: string;
  /** The user that sends the requests, in the format of the API server, and as a subject. */
  readonly user: string;
  readonly subject: object;
}

/** A request to the API server that must be refused. */
export interface Attempt {
  readonly title: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object | undefined;
  /** The kind of patch. Defaults to `merge`. */
  readonly patch?: 'merge' | 'json' | 'apply';
  readonly headers?: Readonly<Record<string, string>>;
  /** The start of the message. Defaults to the message of RBAC. */
  readonly refused?: RegExp;
}

export const TENANT_ROLES = ['sluice-tenant-edit', 'sluice-tenant-secrets', 'sluice-tenant-view'];

export const RBAC = 'rbac.authorization.k8s.io';
export const RBAC_V1 = `/apis/${RBAC}/v1`;
const BY_RBAC = /is forbidden: User .* cannot|attempting to grant RBAC permissions not currently held/;

/** Returns the expected message of the rejection. */
export const refusedBy = ({ refused = BY_RBAC }: Attempt): RegExp => refused;

/** Returns the path of objects in the core group. */
export const inNamespace = (namespace: string, plural: string): string => `/api/v1/namespaces/${namespace}/${plural}`;

/** Returns the path of the RoleBindings in a namespace, or of one of them. */
export const bindings = (namespace: string, name = ''): string =>
  `${RBAC_V1}/namespaces/${namespace}/rolebindings${name && `/${name}`}`;

/** Returns a RoleBinding. */
export function bindingOf(role: string, subject: object, name = 'mine', kind = 'ClusterRole'): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind, name: role },
    subjects: [subject],
  };
}
