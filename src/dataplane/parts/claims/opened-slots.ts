import type { KeyRing } from '../../../core/delivery/key-ring.ts';
import { parseSlotEndpoint } from '../../../core/delivery/slot-endpoint.ts';
import { parseRow, type SubscriptionRow } from '../../../part/gate/subscription-row.ts';
import { type Part, partKeys, slotOf } from '../../../part/keys.ts';
import type { RedisClient } from '../../../redis/client.ts';
import { createLimitedLog } from '../../../telemetry/limited-log.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { type OpenSubscription, openSubscription } from '../../dispatcher/subscription.ts';

/** A subscription of a part, read from its row and its sealed endpoint. */
export interface OpenedSlot {
  readonly row: SubscriptionRow;
  /** `sub_…` */
  readonly name: string;
  readonly subscription: OpenSubscription;
  /** The text from which it was opened. */
  readonly source: string;
  /** The part of it that contains the endpoint. */
  readonly endpoint: string;
}

/** Reads slots again. Undefined for a slot without a row, or whose endpoint can't be opened. */
export type OpenSlots = (slots: readonly string[]) => Promise<readonly (OpenedSlot | undefined)[]>;

export interface SlotOpening {
  readonly redis: Pick<RedisClient, 'call'>;
  readonly keys: KeyRing;
  /** Of the product, for `user-agent`. */
  readonly version: string;
  readonly wallMs: () => number;
  readonly log: Logger;
}

const KEPT_AT_MOST = 20_000;
/** While a slot has events, it is tried twice a second. */
const FAILURE_LINES = { lines: 10, periodMs: 60_000 };

export function createOpenSlots({ redis, keys, version, wallMs, log }: SlotOpening, part: Part): OpenSlots {
  // All other keys are not kept in memory, because a process may have 10,000 parts.
  const { subs, endpoints: sealed } = partKeys(part);
  const kept = new Map<string, OpenedSlot>();
  let keptFor = keys.state();
  const logFailure = createLimitedLog({ ...FAILURE_LINES, nowMs: () => performance.now() });

  function open(slot: string, rowText: string, endpointText: string): OpenedSlot | undefined {
    const row = parseRow(rowText);
    const owner = parseSlotEndpoint(endpointText);
    if (row === undefined || owner === undefined || slotOf(owner.subscription, owner.inc) !== slot) return undefined;
    const { tenant, queue, gen } = part;
    const { subscription: sub, sealed } = owner;
    const source = { tenant, queue, gen, sub, cfgv: row.cfgv, endpoint: sealed };
    const subscription = openSubscription(source, keys, version, wallMs());
    return { row, name: sub, subscription, source: rowText + endpointText, endpoint: endpointText };
  }

  return async function openSlots(slots) {
    const [rows, endpoints] = (await Promise.all([
      redis.call('hmget', subs, ...slots),
      redis.call('hmget', sealed, ...slots),
    ])) as [(string | null)[], (string | null)[]];
    // Slots that were opened with other keys may be signed differently now.
    if (keys.state() !== keptFor) kept.clear();
    keptFor = keys.state();
    return slots.map((slot, i) => {
      const [row, endpoint] = [rows[i] ?? '', endpoints[i] ?? ''];
      const known = kept.get(slot);
      if (known?.source === row + endpoint && wallMs() < known.subscription.validUntilMs) return known;
      kept.delete(slot);
      if (row === '') return undefined;
      try {
        const opened = open(slot, row, endpoint);
        if (kept.size >= KEPT_AT_MOST) kept.clear();
        if (opened !== undefined) kept.set(slot, opened);
        else logFailure(log, 'error', { slot, queue: part.queue }, 'endpoint of a subscription is not usable');
        return opened;
      } catch (error) {
        logFailure(log, 'error', { err: error, slot, queue: part.queue }, 'failed to open a subscription');
        return undefined;
      }
    });
  };
}

/**
 * Creates a function that returns true if the endpoint of a slot was replaced or removed after the slot was opened.
 * Returns false if Redis does not respond.
 */
export function createIsReplaced({ redis }: Pick<SlotOpening, 'redis'>, part: Part) {
  const { endpoints } = partKeys(part);
  return async ({ endpoint }: Pick<OpenedSlot, 'endpoint'>, slot: string): Promise<boolean> =>
    ((await redis.call('hget', endpoints, slot).catch(() => endpoint)) ?? '') !== endpoint;
}
