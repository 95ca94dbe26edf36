import { AsyncLocalStorage } from 'node:async_hooks';
import { Refusal } from '../../http/refusal.ts';
import type { Clock } from '../../time/clock.ts';
import { createTimeShares } from '../../time/time-shares.ts';

/** Part of the time of a Redis master that the calls of an account can use on one replica. */
const SHARE = 0.1;
/** Time in which the unused part of a share can still be used. */
const BURST_MS = 1_000;
/** Calls that would have to wait longer are refused. */
const MOST_WAIT_MS = 2_000;

const accounts = new AsyncLocalStorage<string | undefined>();

/** Runs a call whose time in Redis counts for an account, if it has one. */
export function useShareOf<T>(account: string | undefined, run: () => Promise<T>): Promise<T> {
  return accounts.run(account, run);
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
  /** For calls that change something, which are not refused halfway. */
  readonly changing: TakeTurn;
}

/** @param onRefused called for each refused call */
export function createRedisShares(clock: Pick<Clock, 'nowMs' | 'setTimer'>, onRefused: () => void): RedisShares {
  const shares = createTimeShares({ share: SHARE, burstMs: BURST_MS, clock });

  async function take(account: string, master: string, kind: string, mostWaitMs: number) {
    const turn = await shares.take(`${master} ${account}`, kind, mostWaitMs);
    if (typeof turn !== 'number') return (micros: number | undefined) => turn.end(micros && micros / 1_000);
    onRefused();
    throw new Refusal('rate_limited', {
      detail: `The calls of your account have used their share of the store, which is a tenth of its time. Wait for the number of seconds in Retry-After, and then retry. Smaller pages and shorter ranges use less.`,
      headers: { 'retry-after': `${Math.ceil(turn / 1_000)}` },
    });
  }

  const within =
    (mostWaitMs: number): TakeTurn =>
    (master, kind) => {
      const account = accounts.getStore();
      return account === undefined ? undefined : take(account, master, kind, mostWaitMs);
    };
  return { reading: within(MOST_WAIT_MS), changing: within(Number.POSITIVE_INFINITY) };
}
