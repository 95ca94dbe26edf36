import type { PushCount } from './push-count.ts';

/** The time after which a missing push is searched for. */
const PUSH_MS = 200;

/** Looks for pushes that were sent by Redis but have not arrived. */
export interface PushSearch {
  /** The number of claims and bytes that have been pushed by Redis. */
  readonly expect: (pushed: number, bytes: number) => void;
  readonly stop: () => void;
}

/** @param onLost called for a push that didn't arrive in time, and that isn't before a fence either */
export function createPushSearch(options: {
  readonly count: PushCount;
  readonly fence: () => Promise<void>;
  readonly onLost: () => void;
  readonly onFailure: (error: unknown, what: string) => void;
}): PushSearch {
  const { count } = options;
  let timer: NodeJS.Timeout | undefined;

  async function look(pushed: number, bytes: number): Promise<void> {
    if (count.pushed() >= pushed) return;
    await options.fence();
    if (count.pushed() >= pushed) return;
    count.skipTo(pushed, bytes);
    options.onLost();
  }

  return {
    expect(pushed, bytes) {
      if (pushed <= count.pushed()) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        // After a failure, we subscribe to the channel again and look for claims in any case.
        look(pushed, bytes).catch(error => options.onFailure(error, 'pushes could not be fenced'));
      }, PUSH_MS);
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
