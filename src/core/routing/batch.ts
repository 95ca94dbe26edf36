import { tokensOf } from '../events/tokens.ts';
import { refMs, refOfStreamId } from '../ids/refs.ts';
import type { NotRoutedReason } from './reasons.ts';
import { tellReasons } from './told-reasons.ts';

export interface BatchEntry {
  /** Stream id `ms-seq`. */
  readonly id: string;
  /** Empty if the event has no group key. */
  readonly groupKey: string;
  readonly bytes: number;
}

export interface BatchItem {
  readonly ref: string;
  readonly id: string;
  readonly groupKey: string;
  readonly tokens: number;
}

/** A batch's entries by integration, along with the reasons why other integrations won't receive an entry. */
export interface BatchPlan {
  readonly offers: ReadonlyMap<string, readonly BatchItem[]>;
  /** Maps refs to integrations and reasons. Limited to subscribed integrations. */
  readonly refused: Map<string, Map<string, NotRoutedReason>>;
  /** Refs of events without a group key. These aren't routed. */
  readonly keyless: number;
}

/**
 * Sorts a batch by integration before we read any inbox. Pure. An integration receives an entry if it is subscribed to
 * the queue and the group key is active. The `route` script will check all conditions again in the integration's slot.
 */
export function planBatch(
  entries: readonly BatchEntry[],
  subscribed: Iterable<string>,
  gates: ReadonlyMap<string, ReadonlySet<string>>,
): BatchPlan {
  const integrations = [...subscribed];
  const offers = new Map<string, BatchItem[]>();
  const refused: BatchPlan['refused'] = new Map();
  let keyless = 0;
  for (const { id, groupKey, bytes } of entries) {
    if (groupKey === '') {
      keyless++;
      continue;
    }
    const item: BatchItem = { ref: refOfStreamId(id), id, groupKey, tokens: tokensOf(bytes) };
    const open = gates.get(groupKey);
    for (const integration of integrations) {
      if (open?.has(integration) !== true) {
        refuse(refused, item.ref, integration, 'not_activated');
        continue;
      }
      const list = offers.get(integration);
      if (list === undefined) offers.set(integration, [item]);
      else list.push(item);
    }
  }
  return { offers, refused, keyless };
}

/** Returns how many tokens each entry costs across all of its integrations. */
export function costsOf(entries: readonly BatchEntry[], offers: BatchPlan['offers']): number[] {
  const costs = new Map<string, number>();
  for (const items of offers.values()) {
    for (const { id, tokens } of items) costs.set(id, (costs.get(id) ?? 0) + tokens);
  }
  return entries.map(({ id }) => costs.get(id) ?? 0);
}

/** Records why an integration doesn't receive an event. */
export function refuse(refused: BatchPlan['refused'], ref: string, integration: string, reason: NotRoutedReason): void {
  let reasons = refused.get(ref);
  if (reasons === undefined) refused.set(ref, (reasons = new Map()));
  reasons.set(integration, reason);
}

/** Returns the reasons for each event, as they will be stored. */
export function whyOf(refused: BatchPlan['refused']): { ref: string; ms: number; text: string }[] {
  return [...refused].map(([ref, reasons]) => ({
    ref,
    ms: refMs(ref),
    text: tellReasons(reasons),
  }));
}
