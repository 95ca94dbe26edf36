import type { ControlStore } from '../../redis/control-store.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';
import type { KeySource } from '../engine/keyed-controller.ts';

/**
 * The duration of an outage of Redis before it is reported on Workspaces, in milliseconds. It is longer than a
 * failover.
 */
export const OUTAGE_REPORTED_AFTER_MS = 60_000;

/** The time between two checks of Redis, in milliseconds. */
const CHECK_EVERY_MS = 5_000;

export interface DataPlane {
  /** Returns how long Redis has not responded for the workspace, in milliseconds. Returns 0 if it responds. */
  readonly awayForMs: (workspace: string) => number;
  /**
   * Records whether Redis responded for the workspace. This is needed because only a part of a Redis Cluster may be
   * unavailable.
   */
  readonly note: (workspace: string, answered: boolean) => void;
  /**
   * A source that enqueues all Workspaces when an outage should be reported and when it has ended. It is only used
   * while this replica is the leader.
   */
  readonly source: KeySource;
}

/**
 * Checks whether Redis responds. An outage is reported once and only on Workspaces. Failovers are not reported because
 * they are too short.
 */
export function createDataPlane(deps: {
  readonly caches: Pick<Caches, 'Workspace'>;
  readonly control: Pick<ControlStore, 'readCluster'>;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): DataPlane {
  const { caches, control, clock } = deps;
  /**
   * The time when the part of Redis that a workspace uses stopped responding, by workspace. The time is in milliseconds
   * of the monotonic clock.
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
