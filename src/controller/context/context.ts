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

/** What the reconcilers of all kinds share: caches, stores and clocks. */
export interface Context {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'apply'>;
  readonly caches: Caches;
  readonly tenants: Tenants;
  readonly control: ControlStore;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /** Which accounts have queues that wait for tokens; undefined: not known yet. */
  readonly shortages: {
    readonly isShort: (account: string) => boolean | undefined;
    readonly note: (account: string, short: boolean) => void;
  };
  /** This leader's fencing epoch; throws while it has none. */
  readonly fence: () => number;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  /** The wall clock, for timestamps in statuses, ms. */
  readonly wallMs: () => number;
  /** Time since this process first saw that the object is being deleted, ms. */
  readonly deletingForMs: DeletionTimes['deletingForMs'];
  readonly dataPlane: Pick<DataPlane, 'awayForMs' | 'note'>;
  readonly rootKey: Uint8Array;
  /** Whether the backlog of a Subscription may soon be lost; undefined before the first check. */
  readonly isBacklogAtRisk: (tenant: string, uid: string) => boolean | undefined;
  readonly explain: (error: unknown) => unknown;
  /** Runs a write of activations, but not while those of the tenant are being restored. */
  readonly shared: <T>(tenant: string, run: () => Promise<T>) => Promise<T>;
  /** Records the Event of an object whose finalizer was removed without waiting for Redis or for the end of a pause. */
  readonly recordForcedRemoval: (kind: KindName, object: AnyObject, waitedFor?: 'redis' | 'paused') => void;
}

/** Returns the error that statuses show for a failure of Redis; returns other errors unchanged. */
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

/** Returns whether the workspace of that name owns its namespace, and neither is being deleted. */
export function ownsNamespace(caches: Pick<Caches, 'Workspace' | 'namespaces'>, name: string): boolean {
  const workspace = caches.Workspace.store.get(name);
  const home = caches.namespaces.store.get(name);
  const stays = workspace !== undefined && workspace.metadata.deletionTimestamp === undefined;
  return stays && home?.workspace === name && !home.deleting;
}

/** How long a deletion waits for Redis before its finalizer is removed anyway: a namespace must not get stuck. */
export const FINALIZER_TIMEOUT_MS = 60_000;

/** Formats a time as RFC 3339 in whole seconds, as Kubernetes does. */
export function timestampOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
