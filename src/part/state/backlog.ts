import type { BacklogStore } from '../../plane/backlog.ts';
import type { FindStream, PartClient } from '../inbox/find-part.ts';
import { PART_NUMBER, slotOf } from '../keys.ts';
import { createReadOldestOfSlots } from '../sweep/oldest-waiting.ts';
import { readByStream } from './streams.ts';

/** The position from which to start reading, in the format of `BacklogStore`. */
const FIRST = '0-0';

/** Same as `createBacklogStore`, but for parts. */
export function createPartBacklogStore(redis: PartClient, findStream: FindStream): BacklogStore {
  const readOldest = createReadOldestOfSlots(redis);
  return {
    async readUnrouted(tenant, queue, gen, inboxes) {
      const looks = inboxes.map(({ sub, inc }) => ({ slot: slotOf(sub, inc), settledTo: '' }));
      const found = await readOldest({ tenant, queue, gen, number: PART_NUMBER }, looks, 'log');
      return inboxes.map((_inbox, i) => found[i]?.unroutedMs);
    },

    async readOldestOpen(looks) {
      const found = await readByStream(redis, findStream, looks, (part, slots, some) => {
        const from = some.map(({ settledTo }) => (settledTo === FIRST ? '' : settledTo));
        return readOldest(
          part,
          slots.map((slot, i) => ({ slot, settledTo: from[i] as string })),
        );
      });
      return found.map(oldest => ({
        ms: oldest?.openMs,
        exact: oldest?.exact ?? true,
        settledTo: oldest === undefined || oldest.settledTo === '' ? FIRST : oldest.settledTo,
      }));
    },
  };
}
