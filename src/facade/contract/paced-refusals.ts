import type { ServerResponse } from 'node:http';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { markReplaceable } from '../../http/connections/connection-limit.ts';
import { type Clock, systemClock } from '../../time/clock.ts';
import { createFairTurns } from '../../time/fair-turns.ts';

/** The number of calls of a client that are refused within a time in milliseconds. */
export interface RefusalRate {
  readonly atOnce: number;
  readonly everyMs: number;
}

/** The rate for calls refused because of their address, i.e. 1,000 per second. */
export const REFUSED_ADDRESSES: RefusalRate = { atOnce: 16, everyMs: 16 };
/** The rate for calls refused after they were authenticated, i.e. 125 per second. */
export const REFUSED_CALLERS: RefusalRate = { atOnce: 2, everyMs: 16 };

/** The maximum number of refused calls that wait for their response, regardless of their client. */
export const MOST_REFUSED = 4_096;

/**
 * Calls `refuse` at a limited rate for each client, unless the client has left by then. A client that waits for its
 * response before sending its next call does not use the CPU in the meantime. Closes the connection if there are too
 * many waiting calls, or if the server needs its place for a new connection.
 */
export type PacedRefusals = (client: unknown, response: ServerResponse, refuse: () => void) => void;

export function createPacedRefusals({
  atOnce,
  everyMs,
  clock = systemClock,
}: RefusalRate & { readonly clock?: Pick<Clock, 'setTimer'> }): PacedRefusals {
  let waiting = 0;
  const turns = createFairTurns<unknown>({
    places: atOnce,
    holdMs: everyMs,
    mostWaiting: Infinity,
    mostWaitMs: Infinity,
    clock,
    onWaiting: change => void (waiting += change),
  });
  return (client, response, refuse) => {
    if (waiting >= MOST_REFUSED) return void response.req.socket.destroy();
    markReplaceable(response);
    const reading = pauseReading(response);
    void turns.take(client, { isPatient: true }).then(async leave => {
      await reading.resume();
      // The connection ends before the response is closed.
      if (!response.closed && !response.req.socket.writableEnded) refuse();
      else if (typeof leave === 'function') leave();
    });
  };
}

/**
 * Stops reading from the connection of a request in the next iteration of the event loop, i.e. after the request was
 * read. If a client then closes thousands of connections at the same time, the event loop does not close all of them in
 * a single turn.
 */
function pauseReading({ req: { socket } }: ServerResponse) {
  let isPaused = false;
  const pause = setImmediate(() => {
    isPaused = true;
    socket.pause();
  });
  return {
    /** Waits until the end of the connection has been read, if its client has left. */
    async resume(): Promise<void> {
      clearImmediate(pause);
      if (!isPaused) return;
      socket.resume();
      await nextIteration();
    },
  };
}
