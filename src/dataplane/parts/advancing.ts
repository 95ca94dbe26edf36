import type { Advance } from '../../part/catchup/advance.ts';
import type { Part } from '../../part/keys.ts';

/** Retry interval for a part that is held back because of missing tokens or control data. */
const HELD_MS = 1_000;

export interface Advancing {
  /** There may be events to route. */
  readonly start: () => void;
  readonly stop: () => void;
}

/**
 * Routes events that are waiting because their part is held back or their subscription is behind, until there are none
 * left. Runs concurrently with the part's exchanges, which also serve as heartbeats.
 */
export function createAdvancing(options: {
  readonly advance: Advance;
  readonly part: Part;
  /** There may be lanes that are waiting now. */
  readonly onRouted: (references: number) => void;
  /** The reason why the part is being held back. Returned by each call. */
  readonly onHold: (hold: string | undefined) => void;
  /** The part's control data are missing. */
  readonly onClosed: () => void;
  readonly onError: (error: unknown) => void;
}): Advancing {
  const { advance, part } = options;
  let running = false;
  let again = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  /** Returns whether we should retry for this part. */
  async function advanceAll(): Promise<boolean> {
    for (;;) {
      again = false;
      const answer = await advance(part);
      if (answer.answer !== 'OK') {
        if (answer.answer === 'CLOSED') options.onClosed();
        return answer.answer === 'CLOSED';
      }
      options.onHold(answer.hold);
      if (answer.references > 0) options.onRouted(answer.references);
      if (stopped) return false;
      if (!answer.more && !again) return answer.hold !== undefined;
    }
  }

  async function run(): Promise<void> {
    running = true;
    clearTimeout(timer);
    let isHeld = true;
    try {
      isHeld = await advanceAll();
    } catch (error) {
      options.onError(error);
    }
    running = false;
    if (isHeld && !stopped) timer = setTimeout(() => void run(), HELD_MS);
  }

  return {
    start() {
      again = true;
      if (!running && !stopped) void run();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
