import type { NotRoutedReason } from '../../core/routing/reasons.ts';
import { type InboxRef, inboxMember } from '../../plane/inbox-ref.ts';
import type { DispositionReading, GateReading, QueueReading, RoutingReader } from '../../plane/routing-reader.ts';
import type { Reply } from '../../redis/client.ts';
import { integrationKeys } from '../../redis/keys.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import { createReadDetails } from '../inbox/details.ts';
import { type PartClient, readPart } from '../inbox/find-part.ts';
import { partRefOf } from '../inbox/ref-names.ts';
import { PART_NUMBER, type Part, partKeys, slotOf } from '../keys.ts';
import { msOfRef, streamIdOf } from '../lanes/ref.ts';
import { type Fate, isTenantReady, readFate, readFormer, readSubscriber } from './fate.ts';
import { createFindEvent } from './find-event.ts';

const NO_EVENT = '0-0';
/** The maximum clock difference between the controller, which records activations, and Redis. */
const GRACE_MS = 2_000;

const text = (reply: Reply | undefined): string | undefined => (typeof reply === 'string' ? reply : undefined);

/** The integration state. Parts do not contain it. */
export type StateOfIntegration = (integration: string) => 'pending' | 'active' | 'closed';

/**
 * Returns true if a group key was already active for the integration when an event was accepted. The part only knows
 * since when it is active for a subscription. For a new subscription, this is not earlier than the subscription itself.
 */
async function wasActive(redis: PartClient, { integration }: SubscriptionRow, groupKey: string, ref: string) {
  const sinceMs = text(await redis.call('hget', integrationKeys(integration).act, groupKey));
  return sinceMs !== undefined && Number(sinceMs) + GRACE_MS <= msOfRef(ref);
}

/**
 * The reason why an event was not routed, or will not be routed. If it is still possible that it will be routed, this
 * is undefined.
 */
async function notedOf(
  redis: PartClient,
  part: Part,
  fate: Fate,
  ref: string,
  groupKey: string,
): Promise<NotRoutedReason | undefined> {
  const [hold, held] = (await redis.call('hmget', partKeys(part).meta, 'hold', 'pos')) as Reply[];
  const passed = fate.position ?? (text(hold) === undefined ? ref : (text(held) ?? ''));
  if (!fate.isWhole || fate.row === undefined || groupKey === '') return undefined;
  // Also of an event that waits: a group key that is activated from now on is only active for later events.
  if (fate.since === undefined) return 'not_activated';
  if (ref <= fate.since) {
    if (!(await wasActive(redis, fate.row, groupKey, ref))) return 'not_activated';
  } else if (ref > passed) {
    return undefined;
  }
  // If the subscription is closed or its integration is not active, that is the reason.
  return fate.row.route === 'closed' ? undefined : 'skipped_to_now';
}

async function readQueue(redis: PartClient, tenant: string, queue: string): Promise<QueueReading> {
  const { meta } = partKeys({ tenant, queue, gen: '', number: PART_NUMBER });
  const fields = ['ready', 'state', 'gen', 'hold', 'pos', 'tail'];
  const [ready, state, gen, hold, held, tail] = (await redis.call('hmget', meta, ...fields)) as Reply[];
  const ref = text(hold) === undefined ? text(tail) : text(held);
  return {
    state: ready !== '1' ? 'missing' : state === 'open' ? 'open' : 'closing',
    gen: text(gen) ?? '',
    cursor: ref === undefined ? NO_EVENT : streamIdOf(ref),
  };
}

function createReadDisposition(redis: PartClient) {
  const readDetails = createReadDetails(redis);

  async function progressIn(part: Part, { sub, inc }: InboxRef, ref: string) {
    const details = await readDetails({ part, slot: slotOf(sub, inc) }, [{ ref }]);
    return details === 'GONE' ? undefined : details[0]?.progress;
  }

  return async function readDisposition(
    part: Part,
    asked: InboxRef | undefined,
    former: InboxRef | undefined,
    { ref, groupKey }: { readonly ref: string; readonly groupKey: string },
  ): Promise<DispositionReading> {
    const at = asked && { part, slot: slotOf(asked.sub, asked.inc) };
    const [own, fate] = await Promise.all([
      asked && progressIn(part, asked, ref),
      at === undefined ? undefined : readFate(redis, at, groupKey),
    ]);
    const isOther = former !== undefined && inboxMember(former) !== (asked && inboxMember(asked));
    const earlier = own === undefined && isOther ? await progressIn(part, former, ref) : undefined;
    const progress = own ?? earlier;
    const behindAt = fate?.position && streamIdOf(fate.position);
    return {
      subscription: asked && { id: asked.sub, behindAt },
      progress,
      activatedSinceMs: fate?.since === undefined ? undefined : msOfRef(fate.since),
      noted: progress === undefined && fate !== undefined ? await notedOf(redis, part, fate, ref, groupKey) : undefined,
    };
  };
}

/** Reads the routing state of parts and past decisions. Same as `createRoutingReader`. */
export function createPartRoutingReader(
  redis: PartClient,
  nowMs: () => number,
  stateOf: StateOfIntegration,
): RoutingReader {
  const readDisposition = createReadDisposition(redis);

  return {
    readQueue: (tenant, queue) => readQueue(redis, tenant, queue),

    async readStoredBytes(tenant, queue) {
      const { meta } = partKeys({ tenant, queue, gen: '', number: PART_NUMBER });
      return Number((await redis.call('hget', meta, 'bytes')) ?? 0);
    },

    async readGate(tenant, { name, gen }, integration, groupKey): Promise<GateReading> {
      const [isReady, subscriber] = await Promise.all([
        isTenantReady(redis, tenant),
        readSubscriber(redis, tenant, name, integration),
      ]);
      const state = stateOf(integration);
      if (!isReady) return { integration: state, activated: false, subscription: 'missing' };
      if (subscriber === undefined) return { integration: state, activated: false, subscription: 'none' };
      const at = {
        part: { tenant, queue: name, gen, number: PART_NUMBER },
        slot: slotOf(subscriber.sub, subscriber.inc),
      };
      const { isWhole, row, since } = await readFate(redis, at, groupKey);
      const route = row === undefined || row.route === 'closed' ? 'none' : row.route;
      return { integration: state, activated: since !== undefined, subscription: isWhole ? route : 'missing' };
    },

    findEvent: createFindEvent(redis, nowMs),

    async readFormerInboxes(tenant, queue, ref) {
      const part = await readPart(redis, tenant, queue);
      const own = partRefOf(ref);
      return part === undefined || own === undefined ? [] : readFormer(redis, part, own);
    },

    async readDisposition(tenant, queue, integration, { ref, groupKey }, former) {
      const [part, subscriber] = await Promise.all([
        readPart(redis, tenant, queue),
        readSubscriber(redis, tenant, queue, integration),
      ]);
      const own = partRefOf(ref);
      const asked = subscriber && { integration, ...subscriber };
      if (part === undefined || own === undefined) {
        const subscription = asked && { id: asked.sub, behindAt: undefined };
        return { subscription, progress: undefined, activatedSinceMs: undefined, noted: undefined };
      }
      return readDisposition(part, asked, former, { ref: own, groupKey });
    },
  };
}
