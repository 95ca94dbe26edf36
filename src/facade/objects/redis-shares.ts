import { AsyncLocalStorage } from 'node:async_hooks';
import { Refusal } from '../../http/refusal.ts';
import type { Clock } from '../../time/clock.ts';
import { createTimeShares } from '../../time/time-shares.ts';

/** Part of the time of a Redis master that the calls of an account can use on one replica. */
const SHARE = 0.1;
/** Time in which the unused part of a share can still be used. */
const BURST_MS = 1_000;
/** Reads that would have to wait longer are refused. */
const MOST_WAIT_MS = 2_000;
/** Changes that would have to wait longer before their first script are refused. */
const MOST_CHANGE_WAIT_MS = 5_000;
/** The kind of plain commands, which only read in calls that change something. */
const COMMAND = 'command';

/** A call whose time in Redis counts for an account. */
interface SharedCall {
  /** If undefined, the time of the call is not limited. */
  readonly account: string | undefined;
  /** Aborted once the caller is gone. */
  readonly signal?: AbortSignal;
  /** Whether the call closes something. Such calls never wait, and are never refused. */
  readonly closes?: boolean;
}

const calls = new AsyncLocalStorage<SharedCall & { hasBegun: boolean }>();

/** Runs a call within the share of its account. */
export function useShareOf<T>(call: SharedCall, run: () => Promise<T>): Promise<T> {
  return calls.run({ ...call, hasBegun: false }, run);
}

type TakeTurn = (master: string, kind: string) => Promise<(micros: number | undefined) => void> | undefined;

/**
 * Limits the time that the calls of each account take in Redis, because Redis processes one command at a time: what one
 * tenant reads is what the events of all others wait for. Each account can use a tenth of the time of each master. Calls
 * beyond it wait for their turn.
 */
export interface RedisShares {
  /** For calls that can be refused. @throws Refusal 429 `rate_limited` if a call would have to wait for too long */
  readonly reading: TakeTurn;
  /**
   * For calls that change something. They are not refused halfway, but only until their first script may start.
   *
   * @throws Refusal 429 `rate_limited` if a call would have to wait for too long, or its caller is gone
   */
  readonly changing: TakeTurn;
  /** For what completes a change that has been stored already, such as a replay that was charged. Never refused. */
  readonly completing: TakeTurn;
}

/** @param onRefused called for each refused call */
export function createRedisShares(clock: Pick<Clock, 'nowMs' | 'setTimer'>, onRefused: () => void): RedisShares {
  const shares = createTimeShares({ share: SHARE, burstMs: BURST_MS, clock });

  async function take(account: string, master: string, kind: string, mostWaitMs: number, signal?: AbortSignal) {
    const turn = await shares.take(`${master} ${account}`, kind, mostWaitMs, signal);
    if (typeof turn !== 'number') return (micros: number | undefined) => turn.end(micros && micros / 1_000);
    onRefused();
    throw new Refusal('rate_limited', {
      detail: `The calls of your account have used up their share of the store, which is 10 % of its time. Wait for the number of seconds in Retry-After, and then retry. Requests with smaller pages or shorter ranges use less time.`,
      headers: { 'retry-after': `${Math.ceil(turn / 1_000)}` },
    });
  }

  /** Returns the call whose time is limited, if this is part of one. */
  function currentCall() {
    const call = calls.getStore();
    return call?.account === undefined || call.closes ? undefined : { call, account: call.account };
  }

  const complete = (account: string, master: string, kind: string) =>
    take(account, master, kind, Number.POSITIVE_INFINITY);

  return {
    reading(master, kind) {
      const current = currentCall();
      return current && take(current.account, master, kind, MOST_WAIT_MS, current.call.signal);
    },
    changing(master, kind) {
      const current = currentCall();
      if (current === undefined) return undefined;
      const { account, call } = current;
      if (call.hasBegun) return complete(account, master, kind);
      return take(account, master, kind, MOST_CHANGE_WAIT_MS, call.signal).then(end => {
        call.hasBegun ||= kind !== COMMAND;
        return end;
      });
    },
    completing(master, kind) {
      const current = currentCall();
      return current && complete(current.account, master, kind);
    },
  };
}
