import { inboxRefOf } from '../part/inbox/ref-names.ts';
import { metaKeyOf, PART_NUMBER, type Part } from '../part/keys.ts';
import { eventIdOf } from '../part/log/event-id.ts';
import { createIngest, type PartEvent } from '../part/log/ingest.ts';
import { createIngestWithin } from '../part/space/ingest-within.ts';
import { createSpace } from '../part/space/space.ts';
import { createIngressReader, storedMeta } from '../record/ingress-store.ts';
import type { RedisClient } from '../redis/client.ts';
import type { RoutedEvents } from './ingress/ingress-metrics.ts';
import type { IngestAnswer, IngestItem, IngressStore } from './ingress/store.ts';

function partEventOf(item: IngestItem, source: string): PartEvent {
  const { id: senderId, groupKey = '', body } = item;
  return { senderId, groupKey, meta: storedMeta(item, source), body };
}

/**
 * Stores events in parts, and routes them in the same step. Events without a producer id are stored without an id. The
 * id of such an event is derived from its position (`eventIdOf`). If a producer repeats such an id, the event is a
 * duplicate. Invented ids in this format are rejected (RESERVED), because two events could otherwise have the same id.
 */
export function createPartIngestion(deps: {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
  readonly onRouted: (routed: RoutedEvents) => void;
}): IngressStore {
  const { redis, nowMs, alarm, onRouted } = deps;
  const ingest = createIngestWithin({ ingest: createIngest(redis, nowMs), space: createSpace(redis), nowMs });
  const metaOf = (tenant: string, queue: string) => metaKeyOf({ tenant, queue, number: PART_NUMBER });
  const { readQueue, checkKey } = createIngressReader(redis, nowMs, alarm, metaOf);
  return {
    readQueue,
    checkKey,
    async ingest(tenant, queue, { gen, cfgv, source }, items) {
      const part: Part = { tenant, queue, gen, number: PART_NUMBER };
      const done = await ingest(
        part,
        cfgv,
        items.map(item => partEventOf(item, source)),
      );
      if (done.answer !== 'OK') {
        const refused = { answer: done.answer };
        return { answers: items.map(() => refused) };
      }
      const answers = done.events.map((event, i): IngestAnswer => {
        if (event.answer === 'LIMIT') {
          return { answer: event.answer, use: event.use && { ...event.use, neededBytes: event.cost } };
        }
        if (!('ref' in event)) return { answer: event.answer };
        const { answer, ref } = event;
        return { answer, ref: inboxRefOf(ref), id: items[i]?.id ?? eventIdOf(part, ref) };
      });
      const withoutKey = items.filter(
        ({ groupKey = '' }, i) => groupKey === '' && done.events[i]?.answer === 'OK',
      ).length;
      onRouted({ references: done.references, withoutKey, inactive: done.inactive });
      const failed = done.failure === undefined ? {} : { failure: done.failure };
      return { answers, isPartial: answers.length < items.length, queueNow: done.partNow, ...failed };
    },
  };
}
