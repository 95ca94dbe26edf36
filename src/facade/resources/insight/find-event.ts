import { parsePublicEventId } from '../../../core/ids/public-event-id.ts';
import { isAfter } from '../../../core/ids/refs.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { FoundEvent } from '../../../plane/routing-reader.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { fromRedis } from '../../objects/redis-failures.ts';

/** The maximum number of queues to search in parallel. */
const QUEUES_AT_ONCE = 20;

const NOT_FOUND =
  'Check the id. An event can be found by the id that the producer has specified for at least 24 hours after ingress accepted it, and then by its id in an inbox (evt_ and 35 characters).';

type Streams = readonly Cached<'CatalogStream'>[];

/** An event along with its stream. */
interface StreamEvent {
  readonly stream: Cached<'CatalogStream'>;
  readonly event: FoundEvent;
}

type Wanted = Parameters<Facade['routing']['findEvent']>[2];

/** Searches all streams. Returns the event that was accepted last. */
async function search(
  { routing }: Facade,
  { publicId }: OwnedTenant,
  streams: Streams,
  wanted: Wanted,
  isRight: (stream: string) => Promise<boolean> = async () => true,
): Promise<StreamEvent | undefined> {
  let last: StreamEvent | undefined;
  for (let at = 0; at < streams.length; at += QUEUES_AT_ONCE) {
    const found = await fromRedis(
      Promise.all(
        streams.slice(at, at + QUEUES_AT_ONCE).map(async stream => {
          const { name } = stream.metadata;
          const event = await routing.findEvent(publicId, name, wanted);
          return event && (await isRight(name)) ? { stream, event } : undefined;
        }),
      ),
    );
    for (const each of found) {
      if (each !== undefined && (last === undefined || isAfter(each.event.id, last.event.id))) last = each;
    }
  }
  return last;
}

/** Returns the name of the stream to which a subscription of the producer belongs. */
function streamOf({ caches }: Facade, producer: string, subscription: string): string | undefined {
  const [found] = caches.by('Subscription', 'publicId', subscription).filter(({ metadata, spec }) => {
    const integration = caches.get('Integration', { namespace: producer, name: spec.integration });
    // In any other workspace, a Subscription is not granted.
    return spec.producer === producer && integration?.spec.workspace === metadata.namespace;
  });
  return found?.spec.stream;
}

/**
 * Looks up an event by its ref. Several streams can have an event with the same ref. The event is only returned if it
 * is in the stream of the subscription, or was routed to the subscription before it was deleted.
 */
async function findInInbox(
  facade: Facade,
  tenant: OwnedTenant,
  streams: Streams,
  { ref, subscription }: { readonly ref: string; readonly subscription: string },
): Promise<StreamEvent | undefined> {
  const name = streamOf(facade, tenant.name, subscription);
  const own = streams.filter(({ metadata }) => metadata.name === name);
  return (
    (await search(facade, tenant, own, { ref })) ??
    (await search(facade, tenant, streams, { ref }, async stream => {
      const former = await facade.routing.readFormerInboxes(tenant.publicId, stream, ref);
      return former.some(({ sub }) => sub === subscription);
    }))
  );
}

/**
 * Looks up an event by the producer's id or by its id in an inbox. If several streams contain the producer's id,
 * returns the event that was accepted last.
 *
 * @throws Refusal 404 `unknown_event`
 */
export async function findEvent(
  facade: Facade,
  tenant: OwnedTenant,
  streams: Streams,
  eventId: string,
): Promise<StreamEvent> {
  const sent = await search(facade, tenant, streams, { eventId });
  if (sent !== undefined) return sent;
  const inInbox = parsePublicEventId(eventId);
  const found = inInbox && (await findInInbox(facade, tenant, streams, inInbox));
  if (found === undefined) throw new Refusal('unknown_event', NOT_FOUND);
  return found;
}
