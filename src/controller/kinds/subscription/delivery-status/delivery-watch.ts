import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import {
  type DeliveryFields,
  type DeliveryState,
  parseDeliveryState,
} from '../../../../core/delivery/delivery-state.ts';
import { generationOf } from '../../../../core/ids/ids.ts';
import { keyOf } from '../../../../kube/object.ts';
import type { ReadDeliveries } from '../../../../redis/delivery-reader.ts';
import type { InboxRef } from '../../../../redis/inbox-store.ts';
import type { Logger } from '../../../../telemetry/log.ts';
import type { Clock } from '../../../../time/clock.ts';
import type { Cached } from '../../../caches/caches.ts';
import type { EventNote } from '../../../engine/outcome.ts';
import { createAlarmBatch } from './alarm-batch.ts';
import { createDeadLetterEvents } from './dead-letter-events.ts';
import { differenceOf, NO_DELIVERY, planDelivery } from './plan.ts';
import type { DeliveryWriter, Target } from './writer.ts';

export interface DeliveryWatchDeps {
  readonly read: ReadDeliveries;
  /** Subscriptions with the public id. */
  readonly subscriptionsOf: (sub: string) => readonly Cached<'Subscription'>[];
  /** Returns the retention of the subscription's stream, or the maximum if the stream is gone. */
  readonly retentionMsOf: (subscription: Cached<'Subscription'>) => number;
  readonly writer: DeliveryWriter;
  readonly record: (subscription: Cached<'Subscription'>, note: EventNote) => void;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, 'setTimer'>;
  readonly log: Pick<Logger, 'debug'>;
}

/** Delivery fields of one subscription, with the generation that they belong to. */
export type FoundDelivery = DeliveryFields & { readonly inc?: string | undefined };

function targetOf({ metadata }: Cached<'Subscription'>): Target {
  return { key: keyOf(metadata), uid: metadata.uid };
}

/**
 * Follows the state of deliveries. Dispatchers publish changes at once. Lost messages come with the audit, which reads
 * everything anyway.
 */
export function createDeliveryWatch(deps: DeliveryWatchDeps) {
  const { writer } = deps;
  const deadLetters = createDeadLetterEvents();
  /** Key → a backlog that one audit found without an alarm. It may be short-lived. */
  const suspects = new Map<string, string>();
  let working = false;
  const alarms = createAlarmBatch({
    ...deps,
    onFound: ({ sub, inc }, fields) => {
      if (working) compare(sub, inc, fields, 'alarm');
    },
  });

  /** Returns what the status shows, or will show once it is written. */
  function shownOf(subscription: Cached<'Subscription'>): DeliveryStatus {
    return writer.shownOf(targetOf(subscription)) ?? subscription.status?.delivery ?? NO_DELIVERY;
  }

  function note(subscription: Cached<'Subscription'>, state: DeliveryState, by: 'alarm' | 'audit'): void {
    const target = targetOf(subscription);
    const shown = shownOf(subscription);
    const nowMs = deps.nowMs();
    const status = planDelivery(state, shown, { nowMs, retentionMs: deps.retentionMsOf(subscription) });
    const difference = differenceOf(status, shown);
    const lasts = by === 'alarm' || suspects.get(target.key) === status.backlog || writer.isWaiting(target.key);
    suspects.delete(target.key);
    if (difference === 'none') writer.withdraw(target.key);
    else if (difference === 'outcome' || lasts) writer.offer(target, status);
    else suspects.set(target.key, status.backlog ?? '');
  }

  function compare(sub: string, inc: string | undefined, fields: DeliveryFields, by: 'alarm' | 'audit'): void {
    for (const subscription of deps.subscriptionsOf(sub)) {
      const { metadata } = subscription;
      // Another generation: Redis does not have the routes of this one yet.
      if (metadata.deletionTimestamp !== undefined || inc !== generationOf(metadata.uid)) continue;
      const state = parseDeliveryState(fields);
      const shown = shownOf(subscription);
      const event = deadLetters.of(sub, state, shown.deadLetters === true, deps.nowMs());
      if (event !== undefined) deps.record(subscription, event);
      note(subscription, state, by);
    }
  }

  function end(): void {
    working = false;
    alarms.clear();
    suspects.clear();
    writer.end();
  }

  return {
    /** Handles a dispatcher's message that the state of deliveries changed. */
    onAlarm: (inbox: InboxRef): void => {
      if (working) alarms.add(inbox);
    },
    /** Notes what the audit found for a tenant's subscriptions (`sub_…`). */
    noteAll: (found: ReadonlyMap<string, FoundDelivery>): void => {
      if (!working) return;
      for (const [sub, fields] of found) compare(sub, fields.inc, fields, 'audit');
    },
    /** Returns the state of deliveries for the status. */
    statusOf: shownOf,
    /** Starts over, until the signal aborts: another leader may have led in between. */
    begin: (signal: AbortSignal): void => {
      end();
      if (signal.aborted) return;
      signal.addEventListener('abort', end, { once: true });
      working = true;
      deadLetters.begin(deps.nowMs());
      writer.begin();
    },
    prune(exists: { readonly key: (key: string) => boolean; readonly sub: (sub: string) => boolean }): void {
      for (const key of suspects.keys()) if (!exists.key(key)) suspects.delete(key);
      writer.prune(exists.key);
      deadLetters.prune(exists.sub);
    },
  };
}
