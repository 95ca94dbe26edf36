import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import {
  type DeliveryFields,
  type DeliveryState,
  parseDeliveryState,
} from '../../../../core/delivery/delivery-state.ts';
import { generationOf } from '../../../../core/ids/ids.ts';
import { keyOf } from '../../../../kube/object.ts';
import type { ReadDeliveries } from '../../../../plane/delivery-reader.ts';
import type { InboxRef } from '../../../../plane/inbox-ref.ts';
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
  /** Returns all Subscriptions with this public id. */
  readonly subscriptionsOf: (sub: string) => readonly Cached<'Subscription'>[];
  /** Returns the retention of the subscription's stream, or the maximum retention if the stream does not exist. */
  readonly retentionMsOf: (subscription: Cached<'Subscription'>) => number;
  /**
   * Returns true if the subscription's stream exists. The inbox of a subscription is removed together with the stream.
   */
  readonly hasStream: (subscription: Cached<'Subscription'>) => boolean;
  readonly writer: DeliveryWriter;
  readonly record: (subscription: Cached<'Subscription'>, note: EventNote) => void;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, 'setTimer'>;
  readonly log: Pick<Logger, 'debug'>;
}

/** The delivery fields of a subscription, and the generation for which they were read. */
export type FoundDelivery = DeliveryFields & { readonly inc?: string | undefined };

function targetOf({ metadata }: Cached<'Subscription'>): Target {
  return { key: keyOf(metadata), uid: metadata.uid };
}

/** Offers a status to the writer if it is different from the one shown, and if a backlog is not only temporary. */
function offerLasting(
  { writer, suspects }: { writer: DeliveryWriter; suspects: Map<string, string> },
  target: Target,
  { status, shown, by }: { status: DeliveryStatus; shown: DeliveryStatus; by: 'alarm' | 'audit' },
): void {
  const { key } = target;
  const difference = differenceOf(status, shown);
  const lasts = by === 'alarm' || suspects.get(key) === status.backlog || writer.isWaiting(key);
  suspects.delete(key);
  if (difference === 'none') writer.withdraw(key);
  else if (difference === 'outcome' || lasts) writer.offer(target, status);
  else suspects.set(key, status.backlog ?? '');
}

/**
 * Watches the state of all deliveries. Dispatchers publish all changes. If a message gets lost, the audit will find the
 * change because it regularly reads all subscriptions.
 */
export function createDeliveryWatch(deps: DeliveryWatchDeps) {
  const { writer } = deps;
  const deadLetters = createDeadLetterEvents();
  /** Backlogs found by a single audit without an alarm, by key. Such backlogs may be temporary. */
  const suspects = new Map<string, string>();
  let working = false;
  const alarms = createAlarmBatch({
    ...deps,
    onFound: ({ sub, inc }, fields) => {
      if (working) compare(sub, inc, fields, 'alarm');
    },
  });

  /** Returns the state in the status, including a state that will be added by the next write. */
  function shownOf(subscription: Cached<'Subscription'>): DeliveryStatus {
    return writer.shownOf(targetOf(subscription)) ?? subscription.status?.delivery ?? NO_DELIVERY;
  }

  function note(subscription: Cached<'Subscription'>, state: DeliveryState, by: 'alarm' | 'audit'): void {
    const target = targetOf(subscription);
    const shown = shownOf(subscription);
    const nowMs = deps.nowMs();
    const status = planDelivery(state, shown, { nowMs, retentionMs: deps.retentionMsOf(subscription) });
    offerLasting({ writer, suspects }, target, { status, shown, by });
  }

  function compare(sub: string, inc: string | undefined, fields: DeliveryFields, by: 'alarm' | 'audit'): void {
    for (const subscription of deps.subscriptionsOf(sub)) {
      const { metadata } = subscription;
      // Ignore the fields of another generation. The controller has not written the routes of this generation to Redis
      // yet.
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
    /** Handles a message from a dispatcher about a change in the state of deliveries. */
    onAlarm: (inbox: InboxRef): void => {
      if (working) alarms.add(inbox);
    },
    /** Processes audit results for a tenant's subscriptions (`sub_…`). */
    noteAll: (found: ReadonlyMap<string, FoundDelivery>): void => {
      if (!working) return;
      for (const [sub, fields] of found) compare(sub, fields.inc, fields, 'audit');
    },
    /** Returns the delivery state to write to the status. An inbox that was removed contains no events. */
    statusOf(subscription: Cached<'Subscription'>): DeliveryStatus {
      const shown = shownOf(subscription);
      if (deps.hasStream(subscription)) return shown;
      writer.forget(keyOf(subscription.metadata));
      return { ...shown, ...NO_DELIVERY };
    },
    /** Runs the watch until the signal is aborted. State is discarded first, as there may be a new leader. */
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
