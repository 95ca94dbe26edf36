import { NEEDS_OIDC, NEEDS_ROOT_KEY, ROLES, type Role } from '../../src/config/config.ts';
import {
  CONTROLLER_RULES,
  FACADE_RULES,
  LEASE_RULES,
  type PolicyRule,
  SECRETS_RULES,
} from '../../src/kube/access/rights.ts';

/** The Kubernetes permissions of a role. A role without permissions does not receive a token. */
interface RoleRights {
  /** The purpose of the ServiceAccount. */
  readonly purpose: string;
  readonly cluster: { readonly description: string; readonly rules: readonly PolicyRule[] };
  /** An additional ClusterRole with a separate name. It is bound in the whole cluster, or where Sluice is used. */
  readonly bindable?: { readonly name: string; readonly description: string; readonly rules: readonly PolicyRule[] };
  /** Permissions that are limited to the installation's namespace. */
  readonly namespace?: { readonly description: string; readonly rules: readonly PolicyRule[] };
}

/** A port that clients of Sluice connect to using a Service. */
export interface ServedPort {
  /** The name in the pod, which is different for each role because `all` includes all of them. */
  readonly name: string;
  readonly number: number;
  /** The prefix of all paths that the role serves to its clients. */
  readonly path: string;
}

/** Specifies how to run a role in a cluster. Used to generate all manifests that depend on the role. */
export interface RoleDefinition {
  readonly name: Role;
  /** A sentence for the manifests. */
  readonly description: string;
  readonly serves?: ServedPort;
  readonly rights?: RoleRights;
  readonly rootKey: boolean;
  readonly oidc: boolean;
  /** True if the role sends email. */
  readonly mail: boolean;
  /**
   * The targets that the role connects to, except for Redis and the trace collector. `internet` excludes cluster
   * networks.
   */
  readonly connects: readonly ('kubernetes' | 'https' | 'smtp' | 'internet')[];
  readonly replicas: number;
  /** Requests and limits. There is no CPU limit because throttling delays events. */
  readonly resources: {
    readonly requests: { readonly cpu: string; readonly memory: string };
    readonly limits: { readonly memory: string };
  };
}

/** Port that serves /metrics, /healthz and /readyz in every role. */
export const OPS_PORT = 9090;

type Definition = Omit<RoleDefinition, 'name' | 'rootKey' | 'oidc' | 'mail' | 'connects'> &
  Partial<Pick<RoleDefinition, 'mail' | 'connects'>>;

/** The compiler reports an error here if a role was added to or removed from the program. */
const DEFINITIONS: Readonly<Record<Role, Definition>> = {
  controller: {
    description: 'Reconciles custom resources and writes routes and gates to Redis.',
    rights: {
      purpose: 'Writes statuses, finalizers, and mirrored Secrets.',
      cluster: {
        description:
          "The controller's permissions. Admission policies restrict these permissions to finalizers, revoked activations, and Secrets of the controller.",
        rules: CONTROLLER_RULES,
      },
      bindable: {
        name: 'workspace-secrets',
        description:
          'The Secret permissions of the controller. They are granted for the whole cluster, or only in workspace namespaces.',
        rules: SECRETS_RULES,
      },
      namespace: {
        description: 'The permission to use the Lease for the leader election of the controller.',
        rules: LEASE_RULES,
      },
    },
    mail: true,
    connects: ['kubernetes', 'smtp'],
    replicas: 2,
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '512Mi' } },
  },
  facade: {
    description: 'Serves the REST API at /waas.',
    serves: { name: 'rest', number: 8081, path: '/waas' },
    rights: {
      purpose: 'Writes custom resources on behalf of /waas callers.',
      cluster: {
        description:
          'The permissions of the facade on behalf of /waas callers. Admission policies restrict these permissions to new accounts with the Free plan, and to some fields of workspaces.',
        rules: FACADE_RULES,
      },
    },
    connects: ['kubernetes', 'https'],
    replicas: 2,
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '512Mi' } },
  },
  ingress: {
    description: 'Accepts events at /events and routes them to subscriptions.',
    serves: { name: 'events', number: 8080, path: '/events' },
    replicas: 2,
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
  },
  dispatcher: {
    description: 'Delivers events to endpoints.',
    connects: ['internet'],
    replicas: 2,
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } },
  },
};

export const ROLE_DEFINITIONS: readonly RoleDefinition[] = ROLES.map(name => ({
  mail: false,
  connects: [],
  ...DEFINITIONS[name],
  name,
  rootKey: NEEDS_ROOT_KEY.includes(name),
  oidc: NEEDS_OIDC.includes(name),
}));

/** A set of pods, running either a single role or all roles. */
export interface Workload extends Pick<RoleDefinition, 'description' | 'replicas' | 'resources' | 'connects'> {
  /** The argument of the program, which is also the component in labels and names. */
  readonly name: Role | 'all';
  readonly serves: readonly ServedPort[];
  /** True if the pods receive a token for the API server. */
  readonly token: boolean;
  readonly rootKey: boolean;
  readonly mail: boolean;
}

export const WORKLOADS: readonly Workload[] = ROLE_DEFINITIONS.map(({ serves, rights, ...role }) => ({
  ...role,
  serves: serves === undefined ? [] : [serves],
  token: rights !== undefined,
}));

/** All roles in a single process, for small installations. */
export const ALL_IN_ONE: Workload = {
  name: 'all',
  description: 'Runs all roles in one process.',
  serves: WORKLOADS.flatMap(({ serves }) => serves),
  token: true,
  rootKey: true,
  mail: true,
  connects: [...new Set(WORKLOADS.flatMap(({ connects }) => connects))],
  replicas: 1,
  resources: { requests: { cpu: '200m', memory: '512Mi' }, limits: { memory: '1Gi' } },
};
