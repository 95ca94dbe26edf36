import type { KindName } from '../../api/kinds/kinds.ts';
import type { AnyObject } from '../../kube/object.ts';
import { resourceOf } from '../caches/caches.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';
import type { Room } from './context.ts';

const NOTES = {
  redis: {
    reason: 'LetGoWithoutRedis',
    message: 'Redis did not answer for a minute: let go of, without removing what Redis has of it',
  },
  paused: {
    reason: 'LetGoWhilePaused',
    message: 'the workspace stayed paused for a minute: let go of, what Redis has of it is closed after the pause',
  },
} as const;

/** Records the Event of an object that was let go of before what its deletion waited for. */
export function createLetGoTeller(events: Pick<EventRecorder, 'record'>): Room['tellLetGo'] {
  return (kind: KindName, { metadata }: AnyObject, waitedFor = 'redis') => {
    events.record({ resource: resourceOf(kind), metadata }, { type: 'Warning', ...NOTES[waitedFor] });
  };
}
