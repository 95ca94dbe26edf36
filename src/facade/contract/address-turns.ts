import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientAddress } from '../../http/client-address.ts';
import { type Clock, systemClock } from '../../time/clock.ts';
import { createFairTurns } from '../../time/fair-turns.ts';
import { createPacedRefusals, REFUSED_ADDRESSES } from './paced-refusals.ts';

/**
 * The time in milliseconds during which the next call of the same address waits. Calls end it as soon as they start.
 */
const HOLD_MS = 16;

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
   * Calls `refuse` in the same way, at most 1,000 times per second for each address. Removes the path and the headers
   * of the request, so that waiting calls use little memory. Closes the connection if there are too many of them.
   */
  readonly refuse: (request: IncomingMessage, response: ServerResponse, refuse: () => void) => void;
}

export function createAddressTurns({
  addressOf,
  clock = systemClock,
  nextIteration = setImmediate,
}: {
  readonly addressOf: ClientAddress | undefined;
  readonly clock?: Pick<Clock, 'setTimer'>;
  readonly nextIteration?: (run: () => void) => void;
}): AddressTurns {
  const turns = createFairTurns<unknown>({
    places: 1,
    holdMs: HOLD_MS,
    mostWaiting: Infinity,
    mostWaitMs: Infinity,
    clock,
    nextIteration,
  });
  const pace = createPacedRefusals({ ...REFUSED_ADDRESSES, clock });
  const clientOf = (request: IncomingMessage) => addressOf?.(request) ?? request.socket;

  return {
    start(request, response, start) {
      void turns.take(clientOf(request), PATIENT).then(leave => {
        if (typeof leave === 'function') leave();
        if (!response.closed) start();
      });
    },
    refuse(request, response, refuse) {
      const client = clientOf(request);
      request.url = '';
      request.headers = {};
      request.rawHeaders.length = 0;
      pace(client, response, refuse);
    },
  };
}
