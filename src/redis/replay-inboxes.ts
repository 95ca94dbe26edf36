import { streamIdOfRef } from '../core/ids/refs.ts';
import type { RedisClient } from './client.ts';
import type { HintIndex } from './hints.ts';
import { wakeInbox } from './inbox-operations.ts';
import type { InboxRef } from './inbox-store.ts';
import { inboxKeys, integrationKeys } from './keys.ts';
import { priceReplay, type ReplayPrice, type ReplayRefusal, type ReplaySelection } from './replay-prices.ts';

/** Longer than anybody may repeat a chunk. */
export const CHUNK_TTL_MS = 24 * 3_600_000;

/** One chunk of a replay, of events of one inbox. */
export interface ReplayChunk {
  readonly inbox: InboxRef;
  readonly replayId: string;
  readonly number: number;
  readonly refs: readonly string[];
  /** What `placeOf` answered when it was charged. */
  readonly place: string;
}

/** Where the events of inboxes are priced, and put into lanes. */
export interface ReplayInboxes {
  readonly price: (
    inbox: InboxRef,
    selection: ReplaySelection,
  ) => Promise<ReplayPrice | { readonly answer: ReplayRefusal }>;
  /** Where an inbox lies, for whoever completes the replay; '' where its own name says so. */
  readonly placeOf: (inbox: InboxRef) => Promise<string>;
  /**
   * Puts a chunk once, and answers the same again: t taken, o still open, g gone; a letter for each event. Undefined while
   * the inbox is not known.
   */
  readonly enqueue: (chunk: ReplayChunk) => Promise<string | undefined>;
  /** Something of it can be claimed now. */
  readonly wake: (inbox: InboxRef) => Promise<void>;
}

/** Inboxes that lie in slots of their own. */
export function createQueueInboxes(redis: RedisClient, nowMs: () => number, lower: HintIndex['lower']): ReplayInboxes {
  return {
    price: (inbox, selection) => priceReplay(redis, inbox, selection),
    placeOf: async () => '',
    async enqueue({ inbox, replayId, number, refs }) {
      const i = integrationKeys(inbox.integration);
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const [word, letters] = (await redis.run(
        'enqueue',
        [i.meta, i.sub(inbox.sub), x.log, x.pending, x.due, x.replays, i.replay(replayId)],
        [nowMs(), CHUNK_TTL_MS, inbox.inc, replayId, number, ...refs.flatMap(ref => [ref, streamIdOfRef(ref)])],
      )) as [string, string];
      return word === 'OK' ? letters : undefined;
    },
    wake: inbox => wakeInbox({ redis, nowMs, lower }, inbox),
  };
}
