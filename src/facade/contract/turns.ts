import type { ServerResponse } from 'node:http';
import { markReplaceable } from '../../http/connections/connection-limit.ts';
import { Refusal } from '../../http/refusal.ts';
import { systemClock } from '../../time/clock.ts';
import { createFairTurns, type Leave } from '../../time/fair-turns.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import { callerKey, type Identity } from '../auth/identity.ts';
import type { CallLimit } from './rate-limit.ts';

/** The maximum number of calls of an account in progress on one replica. */
const PLACES = 4;
/** The time in milliseconds after which a call no longer counts, because it is waiting for something else. */
const HOLD_MS = 25;
/** The maximum number of waiting calls of an account. With the times above, they all start within 3.2 s. */
export const MOST_CALLS_WAITING = 512;
/** The maximum time in milliseconds that a call waits for its turn. */
const MOST_WAIT_MS = 5_000;

/** A call that is about to start. */
interface Starting {
  /** The account of the requested object. If there is none, the caller has its own turns. */
  readonly account: string | undefined;
  readonly identity: Identity;
  /**
   * True if the call only closes something. Such a call is not delayed by other calls, is never refused, and is performed
   * even if its client disconnects while the call is waiting. If more than `MOST_CALLS_WAITING` of an account are waiting,
   * the connections of the rest can be closed to make room for new ones, so that they do not use all connections.
   */
  readonly closes: boolean;
  readonly signal: AbortSignal;
  readonly response: ServerResponse;
}

/** The turn of a call. */
interface Turn {
  readonly leave: Leave;
  /** True if the call had to wait. In this case, the access of its caller may have changed. */
  readonly hasWaited: boolean;
}

/**
 * Turns starts the calls of all accounts in a fair order, so that the calls of one account only delay its own calls.
 * The account must have been reached, i.e. the caller has access. Without this condition, a caller could use the turns
 * of others.
 */
export interface Turns {
  /**
   * Waits for the turn of a call.
   *
   * @throws Refusal 429 `rate_limited` if there are too many waiting calls, or if the call has waited for 5 s
   */
  readonly take: (call: Starting) => Promise<Turn>;
}

export function createTurns({
  onWaiting,
  onRefused,
}: {
  /** Called when the number of waiting calls changes. */
  readonly onWaiting: (change: 1 | -1) => void;
  readonly onRefused: (limit: CallLimit) => void;
}): Turns {
  const turns = createFairTurns({
    places: PLACES,
    holdMs: HOLD_MS,
    mostWaiting: MOST_CALLS_WAITING,
    mostWaitMs: MOST_WAIT_MS,
    clock: systemClock,
    onWaiting,
  });

  const closing = createOccupancy(MOST_CALLS_WAITING);

  async function takeToClose(owner: string, response: ServerResponse, onWait: () => void) {
    let endWait = () => {};
    const leave = await turns.take(owner, {
      isPatient: true,
      onWait() {
        onWait();
        endWait = closing.enter(owner) ? () => closing.leave(owner) : markReplaceable(response);
      },
    });
    endWait();
    return leave;
  }

  return {
    async take({ account, identity, closes, signal, response }) {
      const owner = `${closes ? 'closing' : 'any'} ${account ?? callerKey(identity)}`;
      let hasWaited = false;
      const onWait = () => {
        hasWaited = true;
      };
      const leave = await (closes ? takeToClose(owner, response, onWait) : turns.take(owner, { signal, onWait }));
      if (typeof leave === 'function') return { leave, hasWaited };
      if (leave === 'aborted') throw new Refusal('rate_limited', 'The client has closed the connection.');
      onRefused('turn');
      const whose = account === undefined ? 'your token' : 'your account';
      const detail =
        leave === 'full'
          ? `${MOST_CALLS_WAITING} calls with ${whose} are waiting for their turn, which is the limit.`
          : `The call has waited for ${MOST_WAIT_MS / 1_000} s for other calls with ${whose}.`;
      throw new Refusal('rate_limited', {
        detail: `${detail} Nothing was changed. Send fewer calls at the same time.`,
        headers: { 'retry-after': '1' },
      });
    },
  };
}
