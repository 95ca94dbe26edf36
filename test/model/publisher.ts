import { generationOf } from '../../src/core/ids/ids.ts';
import { refMs, refOfStreamId } from '../../src/core/ids/refs.ts';
import { createIngestion } from '../../src/dataplane/ingestion.ts';
import type { IngestAnswer, IngressStore } from '../../src/dataplane/ingress/store.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { createHintIndex } from '../../src/redis/hints.ts';
import { createIngressOperations } from '../../src/redis/ingress-store.ts';
import { queueKeys } from '../../src/redis/keys.ts';
import { event as ingressEvent } from '../../src/redis/testing/tenant.ts';
import { createProcess, type Death, type Process } from './processes/process.ts';
import type { ModelEvent } from './state/expectation.ts';
import { dumpRedis } from './state/redis-dump.ts';
import type { ModelTenant } from './state/tenant.ts';
import { hold } from './state/violation.ts';

export interface PublisherDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly tenantOf: (name: string) => ModelTenant;
  readonly say: (text: string) => void;
}

/** Positions are of one queue: two may have the same. */
export function refsOf(tenant: ModelTenant, streamUid: string): Set<string> {
  return new Set(tenant.events.filter(event => event.streamUid === streamUid).map(({ ref }) => ref));
}

/** Publishes by way of an ingress process, which may die at it; the next event finds another one. */
export function createPublisher({ redis, nowMs, tenantOf, say }: PublisherDeps) {
  let ingress: { readonly process: Process; readonly work: IngressStore } | undefined;
  let published = 0;

  function startIngress() {
    const process = createProcess(redis);
    const operations = createIngressOperations(process.redis, nowMs, () => {});
    return { process, work: createIngestion({ operations, lower: createHintIndex(process.redis, 'r').lower, nowMs }) };
  }

  /** What was stored without an answer. */
  async function adopt(
    tenant: ModelTenant,
    event: Omit<ModelEvent, 'ref' | 'acceptedMs' | 'acknowledged' | 'lost'>,
  ): Promise<void> {
    const dump = await dumpRedis(redis);
    const known = refsOf(tenant, event.streamUid);
    const entries = dump.streams.get(queueKeys(tenant.id, event.stream, generationOf(event.streamUid)).events) ?? [];
    for (const ref of entries.map(([id]) => refOfStreamId(id)).filter(each => !known.has(each))) {
      tenant.accept({ ...event, ref, acceptedMs: refMs(ref), acknowledged: false, lost: false });
    }
  }

  return async (
    name: string,
    stream: string,
    groupKey: string,
    /** The last event of the stream once more, instead of a new one. */
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
    // While it is not certain what is applied, the queue itself has its generation.
    const streamUid = tenant.uidOf(stream, config.gen);
    const earlier = again ? tenant.events.findLast(each => each.streamUid === streamUid && !each.lost) : undefined;
    const title = `${name}#${++published}`;
    const eventId = earlier?.eventId ?? title;
    const body = earlier?.body ?? `body of ${title}`.padEnd(bytes, '.');
    const event = { name: title, eventId, stream, streamUid, groupKey: earlier?.groupKey ?? groupKey, body };
    const outcomes: IngestAnswer[] = [];
    const done = await process.live(async () => {
      const item = ingressEvent(eventId, event.groupKey === '' ? undefined : event.groupKey, body);
      const stored = await work.ingest(tenant.id, stream, config, [item]);
      await stored.seen;
      outcomes.push(...stored.answers);
    }, death);
    if (!done) {
      ingress = undefined;
      await adopt(tenant, event);
      return say('— ingress died');
    }
    const [outcome] = outcomes;
    say(`: ${title} ${outcome?.answer}`);
    if (outcome?.answer === 'DUP') {
      if (earlier !== undefined) earlier.acknowledged = true;
      return hold(14, outcome.ref === earlier?.ref, () => `${title} is taken for the duplicate of another event`);
    }
    const accepted = outcome?.answer === 'OK';
    hold(8, accepted ? takes : !takes || !tenant.isCertain(), () => `${name}'s ${stream} answers ${outcome?.answer}`);
    if (outcome?.answer !== 'OK') return undefined;
    hold(14, earlier === undefined, () => `${title} was stored twice`);
    tenant.accept({ ...event, ref: outcome.ref, acceptedMs: refMs(outcome.ref), acknowledged: true, lost: false });
  };
}
