import { headersWithSecret } from '../../api/endpoint.ts';
import { FIELD_MANAGER } from '../../api/well-known.ts';
import { readOwnUser, subjectOf } from '../../kube/access/own-user.ts';
import type { KubeClient } from '../../kube/client.ts';
import { cacheBehind, isKubeError } from '../../kube/kube-error.ts';
import type { NamespacedViews } from '../../kube/namespaced-views.ts';
import type { ObjectName } from '../../kube/object.ts';
import { ROLE_BINDINGS } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Clock } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';
import { runFewAtOnce } from '../../time/few-at-once.ts';
import type { Caches } from '../caches/caches.ts';
import type { SecretObject } from '../caches/secret-caches.ts';
import { addChanged, type KeySource } from '../engine/keyed-controller.ts';
import { SecretsUnreadableError } from '../engine/outcome.ts';
import { APPLIED_WITHIN_MS, createBindingWatch } from './binding-watch.ts';
import { ownsNamespace } from './context.ts';

/** The number of namespaces to bind concurrently when a term begins. */
const BOUND_AT_ONCE = 16;

/** The time that a new leader waits for these bindings, in milliseconds. */
const BOUND_WITHIN_MS = 10_000;

/** SecretAccess is used to give this process access to the Secrets of each workspace. */
export interface SecretAccess {
  /**
   * If the API server refuses access, this will grant it. @throws SecretsUnreadableError, or KubeError if it has not
   * been granted yet
   */
  readonly ensure: (workspace: string) => Promise<void>;
  /**
   * Grants access to every workspace that the API server refuses. Never rejects, and resolves after 10 seconds even if the
   * API server has not responded.
   */
  readonly ensureAll: () => Promise<void>;
  /** Until `over` is aborted, a removed or changed RoleBinding is detected within seconds. */
  readonly watchBindings: (over: AbortSignal) => void;
  /** Removes access to a workspace if it is being deleted. */
  readonly revoke: (workspace: string) => Promise<void>;
  /**
   * Throws the same errors as `ensure` if the workspace's Secrets have never been read, or if a new leader could not read
   * them again. It must not add an ingress key again that the previous leader has removed.
   */
  readonly assertRead: (workspace: string) => void;
  /** Returns true if `assertRead` does not throw an error. */
  readonly knows: (workspace: string) => boolean;
  /** Returns why a namespace's Secrets are not in the caches, as far as it is known. Undefined if they are. */
  readonly unread: (namespace: string) => { readonly why?: string } | undefined;
  /** Emits a workspace when its access has changed. */
  readonly sources: readonly KeySource[];
  /** Emits the producers of a namespace's Subscriptions with headers from Secrets when its access has changed. */
  readonly producers: readonly KeySource[];
}

/** The access for a process that is allowed to read the Secrets of the whole cluster. */
export const CLUSTER_SECRET_ACCESS: SecretAccess = {
  ensure: async () => {},
  ensureAll: async () => {},
  watchBindings: () => {},
  revoke: async () => {},
  assertRead: () => {},
  knows: () => true,
  unread: () => undefined,
  sources: [],
  producers: [],
};

/** Tracks the time for which access to each namespace has been forbidden, in milliseconds of the monotonic clock. */
function trackForbidden(views: NamespacedViews<SecretObject>, clock: Pick<Clock, 'nowMs'>) {
  /** When access to each namespace was first forbidden. */
  const since = new Map<string, number>();
  views.onAccess(namespace => {
    if (views.access(namespace) !== 'forbidden') since.delete(namespace);
    else if (!since.has(namespace)) since.set(namespace, clock.nowMs());
  });
  return {
    names: (): string[] => [...since.keys()],
    forMs: (namespace: string): number => clock.nowMs() - (since.get(namespace) ?? clock.nowMs()),
    forget: (namespace: string) => since.delete(namespace),
  };
}

/** Returns the error for a missing RoleBinding. */
function secretsForbidden(facts: {
  namespace: string;
  role: string;
  user: string | undefined;
  cause?: unknown;
}): Error {
  const { namespace, role, user = 'the user of the controller', cause } = facts;
  const reason = isKubeError(cause) ? `: ${cause.message}` : '';
  const message = `Sluice cannot read the Secrets of namespace ${namespace}${reason}. Add a RoleBinding to this namespace that binds the ClusterRole ${role} to ${user}`;
  return new SecretsUnreadableError('SecretsForbidden', message, { cause });
}

/** Returns the error for Secrets that have not been listed yet, or that the API server fails to list. */
function secretsUnread(namespace: string, cause: unknown): Error {
  if (cause === undefined) return cacheBehind(`secrets of ${namespace}`);
  const message = `Sluice cannot read the Secrets of namespace ${namespace}: ${(cause as Error).message}. It keeps trying`;
  return new SecretsUnreadableError('ReconcileFailed', message, { cause });
}

function unreadOf(
  views: NamespacedViews<SecretObject>,
  namespace: string,
  forbidden: () => Error,
): ReturnType<SecretAccess['unread']> {
  if (views.wasRead(namespace)) return undefined;
  const access = views.access(namespace);
  if (access === 'closed') {
    const why = `Sluice only reads the Secrets of workspaces, and namespace ${namespace} does not belong to a Workspace`;
    return { why };
  }
  if (access === 'forbidden') return { why: forbidden().message };
  const failure = views.failure(namespace);
  return failure === undefined ? {} : { why: secretsUnread(namespace, failure).message };
}

/** Returns the producers whose routes contain headers from Secrets in this namespace. */
function producersFor({ Subscription }: Pick<Caches, 'Subscription'>, namespace: string): string[] {
  return Subscription.store
    .byIndex('namespace', namespace)
    .filter(({ spec }) => headersWithSecret(spec.endpoint?.headers).length > 0)
    .map(({ spec }) => spec.producer);
}

async function unbind(client: Pick<KubeClient, 'remove'>, name: ObjectName): Promise<void> {
  try {
    await client.remove(ROLE_BINDINGS, name);
  } catch (error) {
    // If this permission is missing, the RoleBindings are created and removed by the administrator.
    if (!isKubeError(error, 403)) throw error;
  }
}

/**
 * Creates Secret access that requires a RoleBinding in each namespace. The leader creates the RoleBinding in the
 * namespace of each workspace unless an administrator has already created it.
 *
 * @param role name of the ClusterRole and of the RoleBinding
 */
export function createSecretAccess(deps: {
  readonly client: Pick<KubeClient, 'create' | 'apply' | 'remove' | 'list' | 'watch'>;
  readonly views: NamespacedViews<SecretObject>;
  readonly caches: Pick<Caches, 'Workspace' | 'namespaces' | 'ingressKeys' | 'Subscription'>;
  readonly role: string;
  readonly clock: Clock;
  readonly log: Logger;
}): SecretAccess {
  const { client, views, caches, role, clock } = deps;
  const forbidden = trackForbidden(views, clock);
  let user: string | undefined;

  function close(namespace: string): void {
    views.close(namespace);
    forbidden.forget(namespace);
  }

  const follow = (name: string) => (ownsNamespace(caches, name) ? views.open(name) : close(name));
  caches.Workspace.subscribe((_change, name) => follow(name));
  caches.namespaces.subscribe((_change, name) => follow(name));

  function refusal(namespace: string, cause?: unknown): Error {
    // The API server may not have processed a new RoleBinding yet.
    if (cause === undefined && forbidden.forMs(namespace) < APPLIED_WITHIN_MS)
      return cacheBehind(`secrets of ${namespace}`);
    return secretsForbidden({ namespace, role, user, cause });
  }

  async function bind(namespace: string): Promise<void> {
    user ??= await readOwnUser(client);
    const binding = {
      roleRef: { apiGroup: ROLE_BINDINGS.group, kind: 'ClusterRole', name: role },
      subjects: [subjectOf(user)],
    };
    try {
      const options = { fieldManager: FIELD_MANAGER.controller, force: true };
      await client.apply(ROLE_BINDINGS, { namespace, name: role }, binding, options);
    } catch (error) {
      if (isKubeError(error, 403) || isKubeError(error, 422)) throw refusal(namespace, error);
      throw error;
    }
    await views.retry(namespace);
  }

  const knows = (workspace: string) => views.access(workspace) === 'closed' || views.isCurrent(workspace);

  return {
    async ensure(namespace) {
      if (views.access(namespace) !== 'forbidden') return;
      await bind(namespace);
      if (views.access(namespace) === 'forbidden') throw refusal(namespace);
    },
    async ensureAll() {
      const bindAll = () => runFewAtOnce(forbidden.names(), BOUND_AT_ONCE, name => bind(name).catch(() => {}));
      await withDeadline(BOUND_WITHIN_MS, bindAll, clock).catch(() => {});
    },
    watchBindings: createBindingWatch(deps),
    async revoke(namespace) {
      close(namespace);
      await unbind(client, { namespace, name: role });
    },
    assertRead(workspace) {
      if (knows(workspace)) return;
      if (views.access(workspace) === 'forbidden') throw refusal(workspace);
      throw secretsUnread(workspace, views.failure(workspace));
    },
    knows,
    unread: namespace => unreadOf(views, namespace, () => secretsForbidden({ namespace, role, user })),
    sources: [{ reflector: caches.ingressKeys, keys: () => [], subscribe: views.onAccess }],
    producers: [
      {
        reflector: caches.ingressKeys,
        keys: () => [],
        subscribe: add => views.onAccess(namespace => addChanged(producersFor(caches, namespace), add)),
      },
    ],
  };
}
