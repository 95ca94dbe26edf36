import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddress } from '../../http/client-address.ts';
import { type Clock, systemClock } from '../../time/clock.ts';
import { createFairTurns } from '../../time/fair-turns.ts';

/** The number of refused calls of an address that are answered within the time below, i.e. 1,000 per second. */
export const REFUSED_AT_ONCE = 16;
export const REFUSED_EVERY_MS = 16;
/** The maximum number of refused calls that wait for their response, regardless of their address. */
export const MOST_REFUSED = 4_096;

/** Calls wait for as long as it takes. */
const PATIENT = { isPatient: true };

/**
 * AddressTurns starts the calls of all addresses in a fair order, before anything is known about their callers. Without
 * it, the calls of an address would have to wait until all earlier calls of other addresses have been authenticated or
 * refused. If addresses are not used, connections take turns instead.
 */
export interface AddressTurns {
  /** Calls `start` when it is the turn of the call, unless its client has left by then. */
  readonly start: (request: IncomingMessage, response: ServerResponse, start: () => void) => void;
  /**
   * Calls `refuse` in the same way, at most 1,000 times per second for each address. A client that waits for its
   * response before sending its next call does not use the CPU in the meantime. Removes the path and the headers of the
   * request, so that waiting calls use little memory. Closes the connection if there are too many of them.
   */
  readonly refuse: (request: IncomingMessage, response: ServerResponse, refuse: () => void) => void;
}

export function createAddressTurns({
  addressOf,
  clock = systemClock,
}: {
  readonly addressOf: ClientAddress | undefined;
  readonly clock?: Pick<Clock, 'setTimer'>;
}): AddressTurns {
  let refused = 0;
  const unlimited = { mostWaiting: Infinity, mostWaitMs: Infinity, clock };
  const turns = createFairTurns<unknown>({ ...unlimited, places: 1, holdMs: REFUSED_EVERY_MS });
  const ofRefused = createFairTurns<unknown>({
    ...unlimited,
    places: REFUSED_AT_ONCE,
    holdMs: REFUSED_EVERY_MS,
    onWaiting: change => void (refused += change),
  });
  const clientOf = (request: IncomingMessage) => addressOf?.(request) ?? request.socket;

  return {
    start(request, response, start) {
      void turns.take(clientOf(request), PATIENT).then(leave => {
        if (typeof leave === 'function') leave();
        if (!response.closed) start();
      });
    },
    refuse(request, response, refuse) {
      if (refused >= MOST_REFUSED) return void request.socket.destroy();
      const client = clientOf(request);
      request.url = '';
      request.headers = {};
      request.rawHeaders.length = 0;
      void ofRefused.take(client, PATIENT).then(leave => {
        if (!response.closed) refuse();
        else if (typeof leave === 'function') leave();
      });
    },
  };
}
