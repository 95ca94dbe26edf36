/** RunningCalls keeps track of the calls in progress, including those whose client has disconnected. */
export interface RunningCalls {
  readonly run: <T>(call: () => Promise<T>) => Promise<T>;
  /** Resolves when all calls that are in progress have ended. */
  readonly ended: () => Promise<unknown>;
}

export function createRunningCalls(): RunningCalls {
  const running = new Set<Promise<unknown>>();
  return {
    async run(call) {
      const answer = call();
      running.add(answer);
      try {
        return await answer;
      } finally {
        running.delete(answer);
      }
    },
    ended: () => Promise.allSettled(running),
  };
}
