import type { ControlRecord } from '../../record/control-store.ts';
import type { RedisClient } from '../../redis/client.ts';
import { integrationKeys } from '../../redis/keys.ts';
import type { GateChange } from '../gate/gate.ts';
import { type Part, partKeys } from '../keys.ts';
import type { OpenPairs } from './open-pairs.ts';
import { forEach, type PartWriter } from './part-writer.ts';

/** The slot that a subscription has in a part. */
export interface Place {
  readonly part: Part;
  readonly slot: string;
}

/**
 * Creates a function that opens and closes a group key of an integration in all of its parts and in the record.
 *
 * @param placesOf returns the locations of an integration's subscriptions
 */
export function createSetActivation({
  redis,
  record,
  writer,
  placesOf,
  pairs,
}: {
  readonly redis: RedisClient;
  readonly record: Pick<ControlRecord, 'setActivation'>;
  readonly writer: Pick<PartWriter, 'change'>;
  readonly placesOf: (integration: string) => readonly Place[];
  readonly pairs: OpenPairs;
}): ControlRecord['setActivation'] {
  /** Pairs which may only have been written to some of their parts. */
  const unfinished = new Set<string>();

  /** Writes a change to all parts of an integration. Returns the number of its subscriptions with a change. */
  async function changeAll(
    fence: number,
    integration: string,
    changeOf: (slot: string) => GateChange,
  ): Promise<number> {
    let count = 0;
    const byPart = Map.groupBy(placesOf(integration), ({ part }) => partKeys(part).meta);
    await forEach(byPart.values(), async places => {
      const changes = places.map(({ slot }) => changeOf(slot));
      const made = await writer.change((places[0] as Place).part, fence, changes);
      count += made;
    });
    return count;
  }

  return async function setActivation(fence, integration, groupKey, sinceMs) {
    const pair = `${groupKey}\0${integration}`;
    const again = unfinished.has(pair);
    const isClosing = sinceMs === null;
    if (isClosing) {
      const isRecorded = (await redis.call('hexists', integrationKeys(integration).act, groupKey)) === 1;
      // We can't rely on the record alone, because it could be lost. It is also possible that parts contain something
      // that was opened with a new subscription before it was recorded.
      const isClosed = placesOf(integration).length === 0 || pairs.isClosed(fence, integration, groupKey);
      if (isClosed && !isRecorded && !again) return false;
    } else {
      pairs.opens(integration, groupKey);
    }
    // The pair is kept until all of it is known to be written. A command without a response may have been run.
    unfinished.add(pair);
    const opened = !isClosing && (await record.setActivation(fence, integration, groupKey, sinceMs));
    let changes = 0;
    if (isClosing || opened || again) {
      const kind = isClosing ? 'off' : 'on';
      changes = await changeAll(fence, integration, slot => ({ kind, slot, groupKey }));
    }
    const closed = isClosing && (await record.setActivation(fence, integration, groupKey, null));
    if (isClosing) pairs.closed(integration, groupKey);
    unfinished.delete(pair);
    return opened || closed || (isClosing && changes > 0);
  };
}
