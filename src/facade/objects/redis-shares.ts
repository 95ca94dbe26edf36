import { AsyncLocalStorage } from 'node:async_hooks';
import { Refusal } from '../../http/refusal.ts';
import type { Clock } from '../../time/clock.ts';
import { createStartsPerTurn } from '../../time/starts-per-turn.ts';
import { createTimeShares } from '../../time/time-shares.ts';

/** The proportion of the time of a Redis master that the calls of an account can use on one replica. */
const SHARE = 0.1;
/** The period of time within which the unused part of a share can still be used. */
const BURST_MS = 1_000;
/** Reads are rejected if they would have to wait longer. */
const MOST_WAIT_MS = 2_000;
/** Changes are rejected if their first script would have to wait longer. */
const MOST_CHANGE_WAIT_MS = 5_000;
/**
 * The number of reads of an account that start in a turn of the event loop. A call can make hundreds of them at once,
 * and preparing a read takes up to 0.5 ms of CPU time.
 */
const READS_PER_TURN = 8;
/** The kind of plain commands, which only read in calls that change something. */
const COMMAND = 'command';

/** A call whose Redis time is counted for an account. */
interface SharedCall {
  /** If undefined, the time of the call is not limited. */
  readonly account: string | undefined;
  /** Aborted when the caller has disconnected. */
  readonly signal?: AbortSignal;
  /** True if the call closes something. Calls that close something never wait and are never rejected. */
  readonly closes?: boolean;
}

const calls = new AsyncLocalStorage<SharedCall & { hasBegun: boolean }>();

/** Runs a call within the share of its account. */
export function useShareOf<T>(call: SharedCall, run: () => Promise<T>): Promise<T> {
  return calls.run({ ...call, hasBegun: false }, run);
}

type TakeTurn = (master: string, kind: string) => Promise<(micros: number | undefined) => void> | undefined;

/**
 * Limits the Redis time used by the calls of each account. Since Redis processes one command at a time, reads of one
 * tenant delay the events of all other tenants. Each account can use up to 10 % of the time of each master. Calls
 * beyond it wait for their turn. In addition, only a few reads of an account start in each turn of the event loop, so
 * that the calls of others don't have to wait until all of them have been sent.
 */
export interface RedisShares {
  /** For calls that can be refused. @throws Refusal 429 `rate_limited` if a call would have to wait for too long */
  readonly reading: TakeTurn;
  /**
   * For calls that change something. Such a call can only be rejected before its first script has started.
   *
   * @throws Refusal 429 `rate_limited` if a call would have to wait too long, or if its caller has disconnected
   */
  readonly changing: TakeTurn;
  /** For completing a change that has already been stored, such as a replay that has been charged. Never refused. */
  readonly completing: TakeTurn;
}

/** @param onRefused called for each refused call */
export function createRedisShares(clock: Pick<Clock, 'nowMs' | 'setTimer'>, onRefused: () => void): RedisShares {
  const shares = createTimeShares({ share: SHARE, burstMs: BURST_MS, clock });
  const reads = createStartsPerTurn(READS_PER_TURN);

  async function take(account: string, master: string, kind: string, mostWaitMs: number, signal?: AbortSignal) {
    const turn = await shares.take(`${master} ${account}`, kind, mostWaitMs, signal);
    if (typeof turn !== 'number') return (micros: number | undefined) => turn.end(micros && micros / 1_000);
    onRefused();
    throw new Refusal('rate_limited', {
      detail: `The calls of your account have used up their share of Redis, which is 10 % of its time. Retry after the number of seconds in Retry-After, with smaller pages or shorter ranges.`,
      headers: { 'retry-after': `${Math.ceil(turn / 1_000)}` },
    });
  }

  /** Returns the current call, if its time is limited. */
  function currentCall() {
    const call = calls.getStore();
    return call?.account === undefined || call.closes ? undefined : { call, account: call.account };
  }

  const complete = (account: string, master: string, kind: string) =>
    take(account, master, kind, Number.POSITIVE_INFINITY);

  return {
    reading(master, kind) {
      const current = currentCall();
      if (current === undefined) return undefined;
      const { account, call } = current;
      return take(account, master, kind, MOST_WAIT_MS, call.signal).then(async end => {
        // Afterwards, since the waiting times of many reads can end in the same turn.
        await reads.take(account);
        return end;
      });
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
