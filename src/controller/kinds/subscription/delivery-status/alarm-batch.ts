import type { DeliveryFields } from '../../../../core/delivery/delivery-state.ts';
import type { ReadDeliveries } from '../../../../plane/delivery-reader.ts';
import { type InboxRef, inboxMember } from '../../../../plane/inbox-ref.ts';
import type { Logger } from '../../../../telemetry/log.ts';
import type { Clock } from '../../../../time/clock.ts';

/** Alarms within this number of milliseconds are processed together. */
const GATHER_MS = 100;

/** Collects all inboxes with an alarm and reads their delivery state in a single batch. */
export function createAlarmBatch(deps: {
  readonly read: ReadDeliveries;
  readonly onFound: (inbox: InboxRef, fields: DeliveryFields) => void;
  readonly clock: Pick<Clock, 'setTimer'>;
  readonly log: Pick<Logger, 'debug'>;
}) {
  const waiting = new Map<string, InboxRef>();
  let cancel: (() => void) | undefined;

  async function read(): Promise<void> {
    cancel = undefined;
    const inboxes = [...waiting.values()];
    waiting.clear();
    try {
      const found = await deps.read(inboxes);
      for (const [i, inbox] of inboxes.entries()) {
        const fields = found[i];
        if (fields !== undefined) deps.onFound(inbox, fields);
      }
    } catch (err) {
      // The state is read again during the next audit.
      deps.log.debug({ err }, 'failed to read deliveries');
    }
  }

  return {
    add(inbox: InboxRef): void {
      waiting.set(inboxMember(inbox), inbox);
      cancel ??= deps.clock.setTimer(() => void read(), GATHER_MS);
    },
    clear(): void {
      cancel?.();
      cancel = undefined;
      waiting.clear();
    },
  };
}
