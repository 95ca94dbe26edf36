import type { KindName } from '../../api/kinds/kinds.ts';
import type { AnyObject } from '../../kube/object.ts';
import { resourceOf } from '../caches/caches.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';
import type { Context } from './context.ts';

const NOTES = {
  redis: {
    reason: 'FinalizerRemovedWithoutRedis',
    message: 'Redis did not answer for a minute: the finalizer was removed without removing the data in Redis',
  },
  paused: {
    reason: 'FinalizerRemovedWhilePaused',
    message:
      'the workspace stayed paused for a minute: the finalizer was removed, and the data in Redis is closed after the pause',
  },
} as const;

/** Returns a function that records the Event of an object whose finalizer was removed early. */
export function createForcedRemovalRecorder(events: Pick<EventRecorder, 'record'>): Context['recordForcedRemoval'] {
  return (kind: KindName, { metadata }: AnyObject, waitedFor = 'redis') => {
    events.record({ resource: resourceOf(kind), metadata }, { type: 'Warning', ...NOTES[waitedFor] });
  };
}
