import type { ControlStore } from '../../record/control-store.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';
import type { KeySource } from '../engine/keyed-controller.ts';

/**
 * The time after which an outage of Redis is reported on Workspaces, in milliseconds. Must be longer than a failover
 * takes.
 */
export const OUTAGE_REPORTED_AFTER_MS = 60_000;

/** The interval between two checks of Redis, in milliseconds. */
const CHECK_EVERY_MS = 5_000;

export interface DataPlane {
  /**
   * Returns the time for which Redis has not responded for this workspace, in milliseconds. 0 if Redis is responding.
   */
  readonly awayForMs: (workspace: string) => number;
  /**
   * Records whether Redis has responded for this workspace. Tracked for each workspace, because a Redis Cluster can be
   * partially unavailable.
   */
  readonly note: (workspace: string, answered: boolean) => void;
  /**
   * Enqueues all Workspaces when an outage should be reported, and again at the end of the outage. Only used while this
   * replica is the leader.
   */
  readonly source: KeySource;
}

/**
 * Checks whether Redis is responding. An outage is only reported a single time, and only on Workspaces. A failover is
 * too short to be reported.
 */
export function createDataPlane(deps: {
  readonly caches: Pick<Caches, 'Workspace'>;
  readonly control: Pick<ControlStore, 'readCluster'>;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): DataPlane {
  const { caches, control, clock } = deps;
  /**
   * When the part of Redis used by a workspace stopped responding, by workspace. The time is in milliseconds of the
   * monotonic clock.
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
