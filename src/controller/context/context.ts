import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { HintIndex } from '../../redis/hints.ts';
import type { Caches } from '../caches/caches.ts';
import { OutageError, ReconcileError } from '../engine/outcome.ts';
import type { Tenants } from '../routes/tenants.ts';
import type { DataPlane } from './data-plane.ts';
import type { DeletionTimes } from './deletion-times.ts';

/** Context contains the caches, the stores and the clocks that are shared by the reconcilers of all kinds. */
export interface Context {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'apply'>;
  readonly caches: Caches;
  readonly tenants: Tenants;
  readonly control: ControlStore;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /** Keeps track of the accounts that have queues waiting for tokens. The value is undefined if it is not known yet. */
  readonly shortages: {
    readonly isShort: (account: string) => boolean | undefined;
    readonly note: (account: string, short: boolean) => void;
  };
  /** Returns the fencing epoch of this leader. It throws an error if there is no epoch. */
  readonly fence: () => number;
  /** The time according to the clock of Redis, in milliseconds. */
  readonly nowMs: () => number;
  /** Returns the time of the wall clock in milliseconds. It is used for timestamps in statuses. */
  readonly wallMs: () => number;
  /** Returns the time since this process first saw that the object is being deleted, in milliseconds. */
  readonly deletingForMs: DeletionTimes['deletingForMs'];
  readonly dataPlane: Pick<DataPlane, 'awayForMs' | 'note'>;
  readonly rootKey: Uint8Array;
  /** Returns true if the backlog of a Subscription may be lost soon. Returns undefined before the first check. */
  readonly isBacklogAtRisk: (tenant: string, uid: string) => boolean | undefined;
  readonly explain: (error: unknown) => unknown;
  /**
   * Runs a function that writes activations. It waits if the activations of the tenant are currently being restored.
   */
  readonly shared: <T>(tenant: string, run: () => Promise<T>) => Promise<T>;
  /**
   * Records an Event for an object with a finalizer that was removed early. This happens if the controller did not wait
   * for Redis or for the end of a pause.
   */
  readonly recordForcedRemoval: (kind: KindName, object: AnyObject, waitedFor?: 'redis' | 'paused') => void;
}

/** Returns the error that is shown in statuses if Redis has failed. Other errors are returned unchanged. */
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

/**
 * Returns true if the workspace with the given name owns its namespace. Returns false if one of them is being deleted.
 */
export function ownsNamespace(caches: Pick<Caches, 'Workspace' | 'namespaces'>, name: string): boolean {
  const workspace = caches.Workspace.store.get(name);
  const home = caches.namespaces.store.get(name);
  const stays = workspace !== undefined && workspace.metadata.deletionTimestamp === undefined;
  return stays && home?.workspace === name && !home.deleting;
}

/**
 * The time after which a finalizer is removed even if Redis does not respond. This prevents the deletion of a namespace
 * from getting stuck.
 */
export const FINALIZER_TIMEOUT_MS = 60_000;

/** Formats a time as RFC 3339 with a precision of one second, which is the format that Kubernetes uses. */
export function timestampOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
