import type { KindName } from '../../api/kinds/kinds.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { resourceOf } from '../../kube/resource.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';
import { SecretsUnreadableError } from '../engine/outcome.ts';
import type { Context } from './context.ts';

const NOTES = {
  redis: {
    reason: 'FinalizerRemovedWithoutRedis',
    message:
      'Redis has not responded for one minute. The controller removed the finalizer. The data in Redis was not removed',
  },
  paused: {
    reason: 'FinalizerRemovedWhilePaused',
    message:
      'the workspace was paused for one minute. The controller removed the finalizer. It will close the data in Redis after the pause',
  },
  draining: {
    reason: 'FinalizerRemovedWhileDraining',
    message:
      'someone else removed the finalizer while the stream was delivering its remaining events. These events will not be delivered',
  },
} as const;

export type ForcedRemoval = keyof typeof NOTES;

/**
 * Returns true if a finalizer can be removed early because of this error. Without the Secrets of a workspace, or with
 * an outdated cache, Redis still contains the routes, so that events would be delivered for an object that no longer
 * exists.
 */
export function isRemovedDespite(error: unknown): boolean {
  return !(error instanceof SecretsUnreadableError || isKubeError(error));
}

/** Returns a function that records an Event when an object's finalizer is removed early. */
export function createForcedRemovalRecorder(events: Pick<EventRecorder, 'record'>): Context['recordForcedRemoval'] {
  return (kind: KindName, { metadata }: AnyObject, waitedFor = 'redis') => {
    events.record({ resource: resourceOf(kind), metadata }, { type: 'Warning', ...NOTES[waitedFor] });
  };
}
