import type { ControlStore } from '../../redis/control-store.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';
import type { KeySource } from '../engine/keyed-controller.ts';

/** How long Redis may be away before Workspaces report it, ms. A failover takes less. */
export const OUTAGE_REPORTED_AFTER_MS = 60_000;

/** Interval between two checks of Redis, ms. */
const CHECK_EVERY_MS = 5_000;

export interface DataPlane {
  /** Returns for how long Redis has not answered for the workspace, ms; 0 while it answers. */
  readonly awayForMs: (workspace: string) => number;
  /** Notes whether Redis answered for the workspace. A part of a Redis Cluster may be away. */
  readonly note: (workspace: string, answered: boolean) => void;
  /** Adds every Workspace when an outage is to be reported, and when it is over. Runs while this replica leads. */
  readonly source: KeySource;
}

/** Watches whether Redis answers. Reports an outage once, only on Workspaces, and never for a failover. */
export function createDataPlane(deps: {
  readonly caches: Pick<Caches, 'Workspace'>;
  readonly control: Pick<ControlStore, 'readCluster'>;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): DataPlane {
  const { caches, control, clock } = deps;
  /** Workspace → when its part of Redis stopped answering, ms of the monotonic clock. */
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
