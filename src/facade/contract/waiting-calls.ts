import { Refusal } from '../../http/refusal.ts';
import type { Clock } from '../../time/clock.ts';
import { createOccupancy } from '../../time/occupancy.ts';
import { longPoll } from './long-poll.ts';
import type { Call } from './route.ts';

/** The maximum number of concurrent calls of a caller that are waiting for events, on one replica. */
export const MOST_WAITING = 16;
/**
 * The maximum for all callers of an account. Each of these calls uses one of the replica's connections, so this is a
 * small part of them.
 */
export const MOST_WAITING_OF_ACCOUNT = 512;

/** The number of seconds after which a rejected call can be repeated. */
const RETRY_AFTER_SECONDS = 1;

/** The points for each additional read of a waiting call. */
const LOOK_POINTS = 1;

/** The owner of a waiting call. */
interface Waiting {
  readonly caller: string;
  /** The account of the requested object, if there is one. */
  readonly account: string | undefined;
}

/** WaitingCalls limits the number of concurrent waiting calls of each caller and of each account. */
export interface WaitingCalls {
  /**
   * Runs `wait` as a waiting call, until it settles.
   *
   * @throws Refusal 429 `rate_limited` without running `wait`, if the caller or the account already has too many
   *   waiting calls
   */
  readonly run: <T>(call: Waiting, wait: () => Promise<T>) => Promise<T>;
}

function refusal(whose: string, most: number): Refusal {
  const detail = `${whose} ${most} calls that wait for events, which is the limit. Wait until one of these calls has been answered or send the call without a waiting time.`;
  return new Refusal('rate_limited', { detail, headers: { 'retry-after': `${RETRY_AFTER_SECONDS}` } });
}

/** Creates the limits. They default to 16 for each caller, and to 512 for each account. */
export function createWaitingCalls(most = MOST_WAITING, mostOfAccount = MOST_WAITING_OF_ACCOUNT): WaitingCalls {
  const ofCallers = createOccupancy(most);
  const ofAccounts = createOccupancy(mostOfAccount);

  async function runOf<T>(account: string | undefined, wait: () => Promise<T>): Promise<T> {
    if (account === undefined) return wait();
    if (!ofAccounts.enter(account)) throw refusal('Your account has', mostOfAccount);
    try {
      return await wait();
    } finally {
      ofAccounts.leave(account);
    }
  }

  return {
    async run({ caller, account }, wait) {
      if (!ofCallers.enter(caller)) throw refusal('You have', most);
      try {
        return await runOf(account, wait);
      } finally {
        ofCallers.leave(caller);
      }
    },
  };
}

/**
 * Returns the function used by a call to wait. Calls which don't wait are not limited. Each additional read costs one
 * point and is skipped if there are no points left.
 */
export function createWaiter(options: {
  readonly clock: Clock;
  readonly waiting: WaitingCalls;
  readonly caller: string;
  readonly account: string | undefined;
  readonly signal: AbortSignal;
  /** Ends all waits, because the server stops. The calls return the last result. */
  readonly closing: AbortSignal;
  readonly spend: (points: number) => boolean;
  /** Called before each wait. */
  readonly onWait: () => void;
  /** Called before each additional read. @throws Refusal if the caller has lost access in the meantime */
  readonly checkAccess: () => Promise<unknown>;
}): Call<'caller', string, unknown, unknown>['waitFor'] {
  const { clock, waiting, caller, account, closing, spend, onWait, checkAccess } = options;
  const mayLook = () => spend(LOOK_POINTS);
  return (waitSeconds, ask, isEnough) => {
    let hasAsked = false;
    const look = async () => {
      if (hasAsked) await checkAccess();
      hasAsked = true;
      return ask();
    };
    const poll = (signal: AbortSignal) =>
      longPoll({ clock, signal, waitMs: waitSeconds * 1_000, mayLook, onWait }, look, isEnough);
    if (waitSeconds === 0) return poll(options.signal);
    return waiting.run({ caller, account }, () => poll(AbortSignal.any([options.signal, closing])));
  };
}
