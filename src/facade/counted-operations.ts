import type { Replays } from '../accounts/replays.ts';
import type { InboxOperations } from '../plane/inbox-operations.ts';
import type { InboxRecovery } from '../plane/inbox-recovery.ts';
import type { FacadeMetrics, InboxOperation } from './facade-metrics.ts';

export interface DataPlaneOperations {
  readonly operations: InboxOperations;
  readonly recovery: InboxRecovery;
  readonly replays: Replays;
}

/** Wraps the inbox operations of the facade in order to count their events. */
export function countOperations(parts: DataPlaneOperations, did: FacadeMetrics['did']): DataPlaneOperations {
  const { operations, recovery, replays } = parts;
  const count =
    <Args extends unknown[], Answer>(
      operation: InboxOperation,
      call: (...args: Args) => Promise<Answer>,
      eventsOf: (answer: Answer) => number,
    ) =>
    async (...args: Args): Promise<Answer> => {
      const answer = await call(...args);
      const events = eventsOf(answer);
      if (events > 0) did(operation, events);
      return answer;
    };
  return {
    operations: {
      skip: count('skipped', operations.skip, answer => (answer === 'OK' ? 1 : 0)),
      skipUpTo: count('skipped', operations.skipUpTo, step => (step.answer === 'OK' ? step.skipped : 0)),
      acknowledge: count('acknowledged', operations.acknowledge, all =>
        all.answer === 'OK' ? all.answers.filter(word => word === 'OK').length : 0,
      ),
      pull: count('pulled', operations.pull, all => (all.answer === 'OK' ? all.events.length : 0)),
    },
    recovery: {
      recover: count('recovered', recovery.recover, all => (all.answer === 'OK' ? all.recovered : 0)),
      sendTest: count('tested', recovery.sendTest, ({ answer }) => (answer === 'OK' ? 1 : 0)),
    },
    replays: {
      ...replays,
      start: count('replayed', replays.start, all => (all.answer === 'OK' && !all.isRepeated ? all.events : 0)),
    },
  };
}
