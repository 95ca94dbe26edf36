import { type InboxRef, inboxMember } from '../plane/inbox-ref.ts';
import type { RedisClient } from '../redis/client.ts';
import { accountKeys } from '../redis/keys.ts';
import { tryEach } from '../time/try-each.ts';

/** At this time, the process that started the replay has either completed the replay or is no longer running. */
export const SWEEP_AFTER_MS = 30_000;
/** The number of replays that are completed at the same time. */
const SWEPT_AT_ONCE = 20;
/** A replay that takes longer than this does not delay others. */
const REPLAY_MS = 10_000;

interface SweepOptions<I> {
  readonly redis: Pick<RedisClient, 'call'>;
  readonly nowMs: () => number;
  readonly read: (account: string, name: string) => Promise<I | undefined>;
  /** Returns false if it is not possible now. */
  readonly complete: (account: string, name: string, intent: I) => Promise<boolean>;
}

/**
 * Creates the sweep of an account's open replays. If a replay can't be completed, e.g. because its part does not
 * respond, the replays of other inboxes are completed anyway. The sweep only rejects if none could be completed.
 */
export function createSweepReplays<I extends { readonly open: boolean; readonly inbox: InboxRef }>(
  options: SweepOptions<I>,
): (account: string) => Promise<number | null> {
  const { redis, nowMs, read, complete } = options;
  return async function sweep(account) {
    const { replays } = accountKeys(account);
    const untilMs = nowMs() - SWEEP_AFTER_MS;
    /** The inboxes of the replays that were not completed, by name. */
    const open = new Map<string, string>();
    let skipped: ReadonlySet<string> = new Set();
    let [ended, left] = [0, 0];
    let failure: unknown;

    async function end(name: string): Promise<void> {
      const intent = await read(account, name);
      if (intent?.open !== true) {
        await redis.call('zrem', replays, name);
      } else {
        const inbox = inboxMember(intent.inbox);
        if (skipped.has(inbox)) return;
        open.set(name, inbox);
        if (!(await complete(account, name, intent))) return;
        open.delete(name);
      }
      ended++;
    }

    let due: string[];
    do {
      const page = ['limit', left, SWEPT_AT_ONCE] as const;
      due = (await redis.call('zrangebyscore', replays, '-inf', untilMs, ...page)) as string[];
      const before = ended;
      await tryEach(due, REPLAY_MS, end).catch((error: unknown) => (failure = error));
      left += due.length - (ended - before);
      skipped = new Set(open.values());
      // If all of them have ended, other accounts go first.
    } while (due.length === SWEPT_AT_ONCE && left > 0);
    if (ended === 0 && failure !== undefined) throw failure;
    const [, chargedMs] = (await redis.call('zrange', replays, 0, 0, 'withscores')) as string[];
    if (chargedMs === undefined) return null;
    const nextMs = Number(chargedMs) + SWEEP_AFTER_MS;
    if (nextMs > nowMs() || left === 0) return Math.max(nextMs, nowMs());
    // Events that can't be completed now are not requested repeatedly.
    return nowMs() + SWEEP_AFTER_MS;
  };
}
