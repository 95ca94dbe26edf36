import type { KindName } from '../../api/kinds/kinds.ts';
import type { KeyRing } from '../../core/delivery/key-ring.ts';
import type { LimitPolicy } from '../../core/limits/limits.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { ControlStore } from '../../record/control-store.ts';
import type { MailRecord } from '../../record/mail-record.ts';
import type { Caches } from '../caches/caches.ts';
import { OutageError, ReconcileError } from '../engine/outcome.ts';
import type { Tenants } from '../routes/tenants.ts';
import type { DataPlane } from './data-plane.ts';
import type { DeletionTimes } from './deletion-times.ts';
import type { ForcedRemoval } from './forced-removal.ts';
import type { SecretAccess } from './secret-access.ts';

/** Context holds the caches, stores, and clocks shared by the reconcilers of all kinds. */
export interface Context {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'apply'>;
  readonly secretAccess: Pick<SecretAccess, 'ensure' | 'revoke' | 'sources' | 'assertRead' | 'knows'>;
  /** Name of this installation, or `''` for the default one. */
  readonly instance: string;
  readonly caches: Caches;
  readonly tenants: Tenants;
  readonly control: ControlStore;
  readonly mails: MailRecord;
  readonly limits: LimitPolicy;
  /** Tracks which accounts have queues waiting for tokens. Undefined if this is not known yet. */
  readonly shortages: {
    readonly isShort: (account: string) => boolean | undefined;
    readonly note: (account: string, short: boolean) => void;
  };
  /** Returns the fencing epoch of this leader and throws an error if there is none. */
  readonly fence: () => number;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  /** Returns the wall clock time in milliseconds. Used for timestamps in statuses. */
  readonly wallMs: () => number;
  /** Returns the time since this process first observed the object's deletion, in milliseconds. */
  readonly deletingForMs: DeletionTimes['deletingForMs'];
  readonly stuckForMs: DeletionTimes['stuckForMs'];
  readonly noteWaiting: DeletionTimes['noteWaiting'];
  readonly dataPlane: Pick<DataPlane, 'awayForMs' | 'note'>;
  readonly keys: KeyRing;
  /** Returns true if a Subscription's backlog may soon be lost. Undefined until the first check. */
  readonly isBacklogAtRisk: (tenant: string, uid: string) => boolean | undefined;
  readonly explain: (error: unknown) => unknown;
  /**
   * Runs a function that writes activations, waiting first if the tenant's activations are currently being restored.
   */
  readonly shared: <T>(tenant: string, run: () => Promise<T>) => Promise<T>;
  /**
   * Records an Event when an object's finalizer was removed early, i.e. without waiting for Redis, for the end of a
   * pause, or for the remaining events of a stream.
   */
  readonly recordForcedRemoval: (kind: KindName, object: AnyObject, waitedFor?: ForcedRemoval) => void;
}

/** Returns the error to show in statuses when Redis has failed. Any other error is returned unchanged. */
export function explainRedisFailure(error: unknown): unknown {
  if (error instanceof ReconcileError || !(error instanceof Error)) return error;
  const redis = /^(ReplyError|MaxRetriesPerRequestError|ClusterAllFailedError|FencedError)$/.test(error.name);
  const away = /Connection is closed|enableOfflineQueue|Command timed out|ECONN|LOADING|CLUSTERDOWN/.test(
    error.message,
  );
  if (!redis && !away) return error;
  return new OutageError('RedisUnavailable', 'Redis is not reachable or not ready. The controller will retry', {
    cause: error,
  });
}

/** Returns true if the named workspace owns its namespace, and false if either of them is being deleted. */
export function ownsNamespace(caches: Pick<Caches, 'Workspace' | 'namespaces'>, name: string): boolean {
  const workspace = caches.Workspace.store.get(name);
  const home = caches.namespaces.store.get(name);
  const stays = workspace !== undefined && workspace.metadata.deletionTimestamp === undefined;
  return stays && home?.workspace === name && !home.deleting;
}

/**
 * Returns true if there is a Workspace with this name, and its namespace has the label. If it returns false, the routes
 * of the workspace are closed or held.
 */
export function hasAdopted(caches: Pick<Caches, 'Workspace' | 'namespaces'>, name: string): boolean {
  return caches.Workspace.store.get(name) !== undefined && caches.namespaces.store.get(name)?.workspace === name;
}

/** After this time, a finalizer is removed even if Redis doesn't respond so that namespace deletion can't get stuck. */
export const FINALIZER_TIMEOUT_MS = 60_000;
