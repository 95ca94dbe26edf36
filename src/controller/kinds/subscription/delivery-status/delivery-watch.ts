import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import {
  type DeliveryFields,
  type DeliveryState,
  parseDeliveryState,
} from '../../../../core/delivery/delivery-state.ts';
import { generationOf } from '../../../../core/ids/ids.ts';
import { keyOf } from '../../../../kube/object.ts';
import type { ReadDeliveries } from '../../../../redis/delivery-reader.ts';
import { type InboxRef, inboxMember } from '../../../../redis/inbox-store.ts';
import type { Logger } from '../../../../telemetry/log.ts';
import type { Clock } from '../../../../time/clock.ts';
import type { Cached } from '../../../caches/caches.ts';
import type { EventNote } from '../../../engine/outcome.ts';
import { createDeadLetterEvents } from './dead-letter-events.ts';
import { differenceOf, NO_TROUBLE, planDelivery } from './plan.ts';
import type { DeliveryWriter, Target } from './writer.ts';

/** Alarms within this time are read together, ms. */
const GATHER_MS = 100;

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

/**
 * Follows the state of deliveries. Dispatchers publish changes at once. Lost messages come with the audit, which reads
 * everything anyway.
 */
export function createDeliveryWatch(deps: DeliveryWatchDeps) {
  const { writer, clock } = deps;
  const deadLetters = createDeadLetterEvents();
  const alarmed = new Map<string, InboxRef>();
  /** Key → a backlog that one audit found without an alarm. It may be short-lived. */
  const suspects = new Map<string, string>();
  let working = false;
  let cancel: (() => void) | undefined;

  function saidOf(target: Target, { status }: Cached<'Subscription'>): DeliveryStatus {
    return writer.shownOf(target) ?? status?.delivery ?? NO_TROUBLE;
  }

  function note(subscription: Cached<'Subscription'>, state: DeliveryState, by: 'alarm' | 'audit'): void {
    const { metadata } = subscription;
    const target = { key: keyOf(metadata), uid: metadata.uid };
    const said = saidOf(target, subscription);
    const nowMs = deps.nowMs();
    const status = planDelivery(state, said, { nowMs, retentionMs: deps.retentionMsOf(subscription) });
    const difference = differenceOf(status, said);
    const lasts = by === 'alarm' || suspects.get(target.key) === status.backlog || writer.isWaiting(target.key);
    suspects.delete(target.key);
    if (difference === 'none') writer.withdraw(target.key);
    else if (difference === 'trouble' || lasts) writer.offer(target, status);
    else suspects.set(target.key, status.backlog ?? '');
  }

  function look(sub: string, inc: string | undefined, fields: DeliveryFields, by: 'alarm' | 'audit'): void {
    for (const subscription of deps.subscriptionsOf(sub)) {
      const { metadata } = subscription;
      // Another generation: Redis does not have the routes of this one yet.
      if (metadata.deletionTimestamp !== undefined || inc !== generationOf(metadata.uid)) continue;
      const state = parseDeliveryState(fields);
      const said = saidOf({ key: keyOf(metadata), uid: metadata.uid }, subscription);
      const event = deadLetters.of(sub, state, said.deadLetters === true, deps.nowMs());
      if (event !== undefined) deps.record(subscription, event);
      note(subscription, state, by);
    }
  }

  async function readAlarmed(): Promise<void> {
    cancel = undefined;
    const inboxes = [...alarmed.values()];
    alarmed.clear();
    try {
      const found = await deps.read(inboxes);
      if (!working) return;
      for (const [i, { sub, inc }] of inboxes.entries()) {
        const fields = found[i];
        if (fields !== undefined) look(sub, inc, fields, 'alarm');
      }
    } catch (err) {
      // The next audit finds it.
      deps.log.debug({ err }, 'deliveries cannot be read');
    }
  }

  function end(): void {
    working = false;
    cancel?.();
    cancel = undefined;
    alarmed.clear();
    suspects.clear();
    writer.end();
  }

  return {
    /** Handles a dispatcher's message that the state of deliveries changed. */
    onAlarm: (inbox: InboxRef): void => {
      if (!working) return;
      alarmed.set(inboxMember(inbox), inbox);
      cancel ??= clock.setTimer(() => void readAlarmed(), GATHER_MS);
    },
    /** Notes what the audit found for a tenant's subscriptions (`sub_…`). */
    noteAll: (found: ReadonlyMap<string, FoundDelivery>): void => {
      if (!working) return;
      for (const [sub, fields] of found) look(sub, fields.inc, fields, 'audit');
    },
    /** Returns the state of deliveries for the status. */
    statusOf(subscription: Cached<'Subscription'>): DeliveryStatus {
      const { metadata } = subscription;
      return saidOf({ key: keyOf(metadata), uid: metadata.uid }, subscription);
    },
    /** Starts over, until `end` or until the signal aborts: another leader may have led in between. */
    begin: (signal: AbortSignal): void => {
      end();
      if (signal.aborted) return;
      signal.addEventListener('abort', end, { once: true });
      working = true;
      deadLetters.begin(deps.nowMs());
      writer.begin();
    },
    end,
    prune(exists: { readonly key: (key: string) => boolean; readonly sub: (sub: string) => boolean }): void {
      for (const key of suspects.keys()) if (!exists.key(key)) suspects.delete(key);
      writer.prune(exists.key);
      deadLetters.prune(exists.sub);
    },
  };
}

export type DeliveryWatch = ReturnType<typeof createDeliveryWatch>;
