import type { RedisClient } from './client.ts';
import { type InboxRef, inboxMember } from './inbox-store.ts';
import { inboxKeys, queueKeys } from './keys.ts';

/** How far an inbox is known to be settled: `0-0` at first, then as the last look answered. */
export interface InboxLook extends InboxRef {
  readonly settledTo: string;
}

export interface OldestOpen {
  /** When the oldest open event was accepted, ms; undefined when none is open. */
  readonly ms: number | undefined;
  /** False: nothing older than `ms` is open, and a further look from `settledTo` on may find out more. */
  readonly exact: boolean;
  readonly settledTo: string;
}

/** What waits for a subscription, read without a write and bounded in each call. */
export interface BacklogStore {
  /**
   * When the oldest event was accepted that the router has not brought to each subscription yet, ms; undefined when it is
   * behind nothing.
   *
   * @param gen generation of the queue
   */
  readonly readUnrouted: (
    tenant: string,
    queue: string,
    gen: string,
    inboxes: readonly InboxRef[],
  ) => Promise<(number | undefined)[]>;
  /** The oldest open event of each inbox of one integration. */
  readonly readOldestOpen: (inboxes: readonly InboxLook[]) => Promise<OldestOpen[]>;
}

/** Subscriptions in one call; references looked at in one inbox: a call stays within a few milliseconds. */
const MOST_BEHIND = 500;
const MOST_INBOXES = 16;
const MOST_REFS = 500;

export function createBacklogStore(redis: Pick<RedisClient, 'run'>): BacklogStore {
  return {
    async readUnrouted(tenant, queue, gen, inboxes) {
      const q = queueKeys(tenant, queue, gen);
      const times: (number | undefined)[] = [];
      for (let at = 0; at < inboxes.length; at += MOST_BEHIND) {
        const members = inboxes.slice(at, at + MOST_BEHIND).map(inboxMember);
        const answer = (await redis.run('unrouted', [q.meta, q.events, q.behind], members)) as string[];
        times.push(...answer.map(ms => (ms === '' ? undefined : Number(ms))));
      }
      return times;
    },

    async readOldestOpen(inboxes) {
      const found: OldestOpen[] = [];
      for (let at = 0; at < inboxes.length; at += MOST_INBOXES) {
        const some = inboxes.slice(at, at + MOST_INBOXES);
        const keys = some.flatMap(({ integration, sub, inc }) => {
          const x = inboxKeys(integration, sub, inc);
          return [x.log, x.pending];
        });
        const args = [MOST_REFS, ...some.map(({ settledTo }) => settledTo)];
        const answer = (await redis.run('oldest', keys, args)) as (string | number)[];
        for (let i = 0; i < answer.length; i += 3) {
          found.push({
            ms: answer[i] === '' ? undefined : Number(answer[i]),
            exact: answer[i + 1] === 1,
            settledTo: answer[i + 2] as string,
          });
        }
      }
      return found;
    },
  };
}
