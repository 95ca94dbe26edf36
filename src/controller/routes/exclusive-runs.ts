/** ExclusiveRuns ensures that there is only a single function running at a time. */
export interface ExclusiveRuns {
  readonly isRunning: () => boolean;
  /** Runs `work` immediately, or after the current run. All calls made during a run share the next run. */
  readonly join: (work: () => Promise<void>) => Promise<void>;
  /** Runs `work` exclusively as soon as no other run is in progress. */
  readonly alone: (work: () => Promise<void>) => Promise<void>;
}

export function createExclusiveRuns(): ExclusiveRuns {
  let running: Promise<void> | undefined;
  let following: Promise<void> | undefined;

  function start(work: () => Promise<void>): Promise<void> {
    running = work().finally(() => {
      running = undefined;
    });
    return running;
  }

  function join(work: () => Promise<void>): Promise<void> {
    if (running === undefined) return start(work);
    following ??= running
      .catch(() => {})
      .then(() => {
        following = undefined;
        return join(work);
      });
    return following;
  }

  return {
    isRunning: () => running !== undefined,
    join,
    alone: async work => {
      while (running !== undefined) await running.catch(() => {});
      await start(work);
    },
  };
}
