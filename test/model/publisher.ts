import type { IngestAnswer, IngestItem, IngressStore } from '../../src/dataplane/ingress/store.ts';
import { createPartIngestion } from '../../src/dataplane/part-ingestion.ts';
import { partRefOf } from '../../src/part/inbox/ref-names.ts';
import { msOfRef } from '../../src/part/lanes/ref.ts';
import { eventIdOf } from '../../src/part/log/event-id.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { createProcess, type Death, type Process } from './processes/process.ts';
import { type ModelEvent, RETENTION_MS } from './state/expectation.ts';
import type { ModelTenant } from './state/tenant.ts';
import { hold } from './state/violation.ts';
import type { WorldDump } from './state/world-dump.ts';

export interface PublisherDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly dump: () => Promise<WorldDump>;
  readonly tenantOf: (name: string) => ModelTenant;
  readonly say: (text: string) => void;
}

type Sent = Omit<ModelEvent, 'eventId' | 'ref' | 'acceptedMs' | 'acknowledged' | 'lost'> & {
  readonly eventId: string | undefined;
};

/** Publishes events using an ingress process, which may crash while doing so. The next event uses a new process. */
export function createPublisher({ redis, nowMs, dump, tenantOf, say }: PublisherDeps) {
  let ingress: { readonly process: Process; readonly work: IngressStore } | undefined;
  let published = 0;

  function startIngress() {
    const process = createProcess(redis);
    const work = createPartIngestion({ redis: process.redis, nowMs, alarm: () => {}, onRouted: () => {} });
    return { process, work };
  }

  /** Events that were stored without a response. */
  async function adopt(tenant: ModelTenant, event: Sent): Promise<void> {
    const part = (await dump()).parts.get(`${tenant.id}:${event.stream}`);
    const known = new Set(tenant.events.filter(each => each.streamUid === event.streamUid).map(({ ref }) => ref));
    for (const { ref } of part?.log ?? []) {
      if (part === undefined || known.has(ref)) continue;
      const eventId = event.eventId ?? eventIdOf(part.part, ref);
      tenant.accept({ ...event, eventId, ref, acceptedMs: msOfRef(ref), acknowledged: false, lost: false });
    }
  }

  return async (
    name: string,
    stream: string,
    groupKey: string,
    /** Publishes the last event of the stream again, instead of a new event. */
    again: boolean,
    bytes: number,
    death?: Death,
  ): Promise<void> => {
    const tenant = tenantOf(name);
    const { process, work } = (ingress ??= startIngress());
    const defined = tenant.defined().streams.get(stream);
    const config = await work.readQueue(tenant.id, stream);
    const takes = tenant.mayBe(({ streams }) => streams.get(stream)?.takesEvents === true);
    if (config === null || config === 'unavailable') {
      hold(
        8,
        defined === undefined || !tenant.isCertain(),
        () => `${name}'s ${stream} is ${config ?? 'unknown'} to ingress`,
      );
      return say(`: ${config ?? 'unknown'}`);
    }
    // While the applied state is uncertain, the stream itself has its generation.
    const streamUid = tenant.uidOf(stream, config.gen);
    const earlier = again ? tenant.events.findLast(each => each.streamUid === streamUid && !each.lost) : undefined;
    const title = `${name}#${++published}`;
    // For some events, the store creates the id.
    const eventId = earlier?.eventId ?? (published % 3 === 0 ? undefined : title);
    const body = earlier?.body ?? `body of ${title}`.padEnd(bytes, '.');
    const event: Sent = { name: title, eventId, stream, streamUid, groupKey: earlier?.groupKey ?? groupKey, body };
    const outcomes: IngestAnswer[] = [];
    const done = await process.live(async () => {
      const stored = await work.ingest(tenant.id, stream, config, [itemOf(event)]);
      outcomes.push(...stored.answers);
    }, death);
    if (!done) {
      ingress = undefined;
      await adopt(tenant, event);
      return say('— ingress died');
    }
    const [outcome] = outcomes as [IngestAnswer];
    say(`: ${title} ${outcome.answer}`);
    if (outcome.answer === 'DUP') {
      if (earlier !== undefined) earlier.acknowledged = true;
      const same = partRefOf(outcome.ref) === earlier?.ref && outcome.id === earlier?.eventId;
      return hold(14, same, () => `${title} is taken for the duplicate of another event`);
    }
    if (outcome.answer === 'RESERVED') {
      const isOld = earlier !== undefined && nowMs() - earlier.acceptedMs > RETENTION_MS;
      return hold(14, isOld, () => `${title} has the id of an event that is stored`);
    }
    const accepted = outcome.answer === 'OK';
    hold(8, accepted ? takes : !takes || !tenant.isCertain(), () => `${name}'s ${stream} answers ${outcome.answer}`);
    if (outcome.answer !== 'OK') return undefined;
    hold(14, earlier === undefined, () => `${title} was stored twice`);
    const ref = partRefOf(outcome.ref) ?? '';
    tenant.accept({ ...event, eventId: outcome.id, ref, acceptedMs: msOfRef(ref), acknowledged: true, lost: false });
  };
}

function itemOf({ eventId, groupKey, body }: Sent): IngestItem {
  return {
    id: eventId,
    type: 'order.created',
    groupKey: groupKey === '' ? undefined : groupKey,
    contentType: 'application/json',
    traceparent: undefined,
    forward: {},
    body: Buffer.from(body),
  };
}
