import type { InboxOperations } from '../redis/inbox-operations.ts';
import type { InboxRecovery } from '../redis/inbox-recovery.ts';
import type { Replays } from '../redis/replays.ts';
import type { FacadeMetrics } from './facade-metrics.ts';

export interface DataPlaneOperations {
  readonly operations: InboxOperations;
  readonly recovery: InboxRecovery;
  readonly replays: Replays;
}

/** Wraps the facade's inbox operations; counts the events of each. */
export function countOperations(parts: DataPlaneOperations, did: FacadeMetrics['did']): DataPlaneOperations {
  const { operations, recovery, replays } = parts;
  return {
    operations: {
      async skip(...args) {
        const answer = await operations.skip(...args);
        if (answer === 'OK') did('skipped', 1);
        return answer;
      },
      async skipUpTo(...args) {
        const step = await operations.skipUpTo(...args);
        if (step.answer === 'OK') did('skipped', step.skipped);
        return step;
      },
      async acknowledge(...args) {
        const answer = await operations.acknowledge(...args);
        if (answer.answer === 'OK') did('acknowledged', answer.answers.filter(word => word === 'OK').length);
        return answer;
      },
      async pull(...args) {
        const answer = await operations.pull(...args);
        if (answer.answer === 'OK') did('pulled', answer.events.length);
        return answer;
      },
    },
    recovery: {
      async recover(...args) {
        const answer = await recovery.recover(...args);
        if (answer.answer === 'OK') did('recovered', answer.recovered);
        return answer;
      },
      async sendTest(...args) {
        const answer = await recovery.sendTest(...args);
        if (answer.answer === 'OK') did('tested', 1);
        return answer;
      },
    },
    replays: {
      ...replays,
      async start(...args) {
        const started = await replays.start(...args);
        if (started.answer === 'OK') did('replayed', started.events);
        return started;
      },
    },
  };
}
