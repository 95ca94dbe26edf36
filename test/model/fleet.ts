import type { Completion } from '../../src/part/claims/exchange.ts';
import type { Push } from '../../src/part/claims/message.ts';
import type { Part } from '../../src/part/keys.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { createDispatcher, type Dispatcher, type Flight, type Job, type Report } from './processes/dispatcher.ts';
import { createProcess, type Death, type Process } from './processes/process.ts';

export interface FleetDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly onReport: (report: Report) => void;
}

interface Running {
  readonly process: Process;
  readonly work: Dispatcher;
}

/** Two dispatchers. A crashed dispatcher is replaced when required. */
export function createFleet({ redis, nowMs, onReport }: FleetDeps) {
  const running: (Running | undefined)[] = [];
  let started = 0;

  function start(): Running {
    const process = createProcess(redis);
    return { process, work: createDispatcher(process.redis, `d${started++}`, nowMs, onReport) };
  }

  const alive = () => running.filter(each => each !== undefined);

  return {
    /** Returns false if the dispatcher crashed. */
    async work(which: number, job: Job, parts: readonly Part[], most: number, death?: Death): Promise<boolean> {
      const { process, work } = (running[which] ??= start());
      const done = await process.live(async () => {
        for (const part of parts) await work.work(job, part, most);
      }, death);
      if (!done) running[which] = undefined;
      return done;
    },
    async hear(pushes: readonly { readonly part: Part; readonly push: Push }[]): Promise<void> {
      for (const { part, push } of pushes) for (const { work } of alive()) await work.hear(part, push);
    },
    flights: (): Flight[] => alive().flatMap(({ work }) => work.flights()),
    end(flight: Flight, outcome: Completion['outcome'], dueMs: number): void {
      for (const { work } of alive()) if (work.flights().includes(flight)) work.end(flight, outcome, dueMs);
    },
    kill: (which: number): void => {
      running[which] = undefined;
    },
  };
}
