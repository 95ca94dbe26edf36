import type { ControlStore } from '../../record/control-store.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';
import type { KeySource } from '../engine/keyed-controller.ts';

/**
 * How long Redis may be unavailable before we report this on Workspaces, in milliseconds. Must exceed the duration of a
 * failover.
 */
export const OUTAGE_REPORTED_AFTER_MS = 60_000;

/** Interval between Redis checks, in milliseconds. */
const CHECK_EVERY_MS = 5_000;

export interface DataPlane {
  /** Returns how long Redis has been unresponsive for the workspace, in milliseconds, or 0 if it responds. */
  readonly awayForMs: (workspace: string) => number;
  /**
   * Records whether Redis responded for the workspace. Parts of a Redis Cluster can be unavailable on their own, so
   * this is tracked per workspace.
   */
  readonly note: (workspace: string, answered: boolean) => void;
  /**
   * Enqueues all Workspaces when an outage should be reported, and again when it is over. Only used while this replica
   * is the leader.
   */
  readonly source: KeySource;
}

/**
 * Checks whether Redis responds. Outages are reported once, and only on Workspaces. We don't report failovers, since
 * they are too short.
 */
export function createDataPlane(deps: {
  readonly caches: Pick<Caches, 'Workspace'>;
  readonly control: Pick<ControlStore, 'readCluster'>;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): DataPlane {
  const { caches, control, clock } = deps;
  /**
   * When the part of Redis used by a workspace stopped responding, by workspace. In milliseconds of the monotonic
   * clock.
   */
  const since = new Map<string, number>();
  let awaySinceMs: number | undefined;
  let reported = false;

  function judge(answered: boolean): boolean {
    if (answered) awaySinceMs = undefined;
    else awaySinceMs ??= clock.nowMs();
    const report = awaySinceMs !== undefined && clock.nowMs() - awaySinceMs >= OUTAGE_REPORTED_AFTER_MS;
    const turned = report !== reported;
    reported = report;
    return turned;
  }

  function subscribe(add: (key: string) => void): () => void {
    let stopped = false;
    let cancel = clock.setTimer(() => void check(), CHECK_EVERY_MS);
    async function check(): Promise<void> {
      const answered = await control.readCluster().then(
        () => true,
        () => false,
      );
      if (stopped) return;
      if (judge(answered)) for (const key of caches.Workspace.store.keys()) add(key);
      cancel = clock.setTimer(() => void check(), CHECK_EVERY_MS);
    }
    return () => {
      stopped = true;
      cancel();
      since.clear();
      awaySinceMs = undefined;
      reported = false;
    };
  }

  return {
    awayForMs: workspace => {
      const sinceMs = Math.min(
        awaySinceMs ?? Number.POSITIVE_INFINITY,
        since.get(workspace) ?? Number.POSITIVE_INFINITY,
      );
      return Number.isFinite(sinceMs) ? clock.nowMs() - sinceMs : 0;
    },
    note: (workspace, answered) => {
      if (answered) since.delete(workspace);
      else if (!since.has(workspace)) since.set(workspace, clock.nowMs());
    },
    source: { reflector: caches.Workspace, keys: () => [], subscribe },
  };
}
