import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';

/**
 * The time for which events that wait for a deleted Workspace are kept, in milliseconds. The Workspace may be
 * recreated.
 */
export const GRACE_MS = 60_000;

/** Returns true if the Workspace with this name may have been deleted within the last minute. */
export type IsRecentlyGone = (name: string) => boolean;

/**
 * Notes when Workspaces are deleted. Also runs while another replica leads. For a Workspace that was deleted before
 * this process was started, the minute begins with the process.
 *
 * @param onKept called with the remaining time whenever the answer is true
 */
export function createRecentlyGone(
  { subscribe }: Pick<Reflector<AnyObject>, 'subscribe'>,
  clock: Pick<Clock, 'nowMs'>,
  onKept: (name: string, leftMs: number) => void,
): IsRecentlyGone {
  const startedMs = clock.nowMs();
  const goneMs = new Map<string, number>();
  subscribe((_change, name, old, current) => {
    if (old === undefined || old.metadata.deletionTimestamp !== undefined) return;
    // After a list, the current object can be a new one with the same name.
    const stays = current?.metadata.uid === old.metadata.uid && current.metadata.deletionTimestamp === undefined;
    if (stays) return;
    for (const [other, ms] of goneMs) if (ms + GRACE_MS <= clock.nowMs()) goneMs.delete(other);
    goneMs.set(name, clock.nowMs());
  });
  return name => {
    const leftMs = (goneMs.get(name) ?? startedMs) + GRACE_MS - clock.nowMs();
    if (leftMs > 0) onKept(name, leftMs);
    return leftMs > 0;
  };
}
