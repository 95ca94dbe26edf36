import { inboxRefOf } from '../part/inbox/ref-names.ts';
import { PART_NUMBER, type Part, partKeys } from '../part/keys.ts';
import { eventIdOf } from '../part/log/event-id.ts';
import { createIngest, type PartEvent } from '../part/log/ingest.ts';
import { createIngressReader, storedMeta } from '../record/ingress-store.ts';
import type { RedisClient } from '../redis/client.ts';
import type { RoutedEvents } from './ingress/ingress-metrics.ts';
import type { IngestAnswer, IngestItem, IngressStore } from './ingress/store.ts';

function partEventOf(item: IngestItem, source: string): PartEvent {
  const { id: senderId, groupKey = '', body } = item;
  return { senderId, groupKey, meta: storedMeta(item, source), body };
}

/**
 * Stores events in parts, where they are routed in the same step: nobody has to be told. An event whose sender gave no id is
 * stored without one, and answered with the id that all readers make of its position (`eventIdOf`). A sender that repeats
 * such an id is answered as for any other duplicate; one that makes up such an id is refused (RESERVED), or two events could
 * have the same.
 */
export function createPartIngestion(deps: {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
  readonly onRouted: (routed: RoutedEvents) => void;
}): IngressStore {
  const { redis, nowMs, alarm, onRouted } = deps;
  const ingest = createIngest(redis, nowMs);
  const metaOf = (tenant: string, queue: string) => partKeys({ tenant, queue, gen: '', number: PART_NUMBER }).meta;
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
        if (!('ref' in event)) return event;
        const { answer, ref } = event;
        return { answer, ref: inboxRefOf(ref), id: items[i]?.id ?? eventIdOf(part, ref) };
      });
      const withoutKey = items.filter(
        ({ groupKey = '' }, i) => groupKey === '' && done.events[i]?.answer === 'OK',
      ).length;
      onRouted({ references: done.references, withoutKey, inactive: done.inactive });
      return { answers, isPartial: answers.length < items.length };
    },
  };
}
