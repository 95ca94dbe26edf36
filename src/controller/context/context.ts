import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { ControlStore } from '../../redis/control-store.ts';
import type { HintIndex } from '../../redis/hints.ts';
import type { World } from '../caches/caches.ts';
import { OutageError, ReconcileError } from '../engine/outcome.ts';
import type { Tenants } from '../routes/tenants.ts';
import type { DataPlane } from './data-plane.ts';
import type { DeletionTimes } from './deletion-times.ts';

/** What the rooms of the kinds work with: verbs and caches, no clients of their own. */
export interface Room {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'apply'>;
  readonly world: World;
  readonly tenants: Tenants;
  readonly control: ControlStore;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /** Which accounts have queues that wait for tokens; undefined: not looked at yet. */
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
  /** For how long the object has been on its way out, as far as this process saw it, ms. */
  readonly deletingForMs: DeletionTimes['deletingForMs'];
  readonly dataPlane: Pick<DataPlane, 'awayForMs' | 'note'>;
  readonly rootKey: Uint8Array;
  /** Whether what waits for a Subscription of the tenant may soon be lost; undefined before it was looked at. */
  readonly isBacklogAtRisk: (tenant: string, uid: string) => boolean | undefined;
  readonly explain: (error: unknown) => unknown;
  /** Holds activations off while a tenant's are being restored. */
  readonly shared: <T>(tenant: string, run: () => Promise<T>) => Promise<T>;
  /** Records the Event of an object whose deletion did not wait any longer: for Redis, or for the end of a pause. */
  readonly tellLetGo: (kind: KindName, object: AnyObject, waitedFor?: 'redis' | 'paused') => void;
}

/** A failure of Redis as objects tell it; everything else is left as it is. */
export function explainRedisFailure(error: unknown): unknown {
  if (error instanceof ReconcileError || !(error instanceof Error)) return error;
  const redis = /^(ReplyError|MaxRetriesPerRequestError|ClusterAllFailedError|FencedError)$/.test(error.name);
  const away = /Connection is closed|enableOfflineQueue|Command timed out|ECONN|LOADING|CLUSTERDOWN/.test(
    error.message,
  );
  if (!redis && !away) return error;
  return new OutageError('RedisUnavailable', 'Redis does not answer as it should; tried again', { cause: error });
}

/** Whether the namespace is the workspace's of that name, and stays so: one that somebody else made speaks for nobody. */
export function ownsNamespace(world: Pick<World, 'Workspace' | 'namespaces'>, name: string): boolean {
  const workspace = world.Workspace.store.get(name);
  const home = world.namespaces.store.get(name);
  const stays = workspace !== undefined && workspace.metadata.deletionTimestamp === undefined;
  return stays && home?.workspace === name && !home.deleting;
}

/** How long a deletion waits for Redis before the object is let go: a namespace is never stuck. */
export const LET_GO_AFTER_MS = 60_000;

/** RFC 3339 in whole seconds, as Kubernetes writes times. */
export function timestampOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
