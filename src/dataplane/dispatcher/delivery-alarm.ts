import type { DeliveryNews, DeliveryNote } from '../../redis/delivery-news.ts';

/**
 * The minimum interval between two alarms of a subscription in milliseconds. A backlog must also last this long before
 * it is reported.
 */
const QUIET_MS = 10_000;
/** A backlog that keeps changing is reported after this time in milliseconds. */
const LATEST_MS = 60_000;
/**
 * The maximum number of subscriptions in memory. If it is exceeded, the subscriptions that have not changed for the
 * longest time are removed.
 */
const MOST_REMEMBERED = 20_000;

export interface DeliveryAlarmDeps {
  /** Asks the controller to check the subscription with this member. */
  readonly raise: (member: string) => void;
  /** A monotonic clock in milliseconds. */
  readonly monotonicMs: () => number;
  /** Calls `run` once after the delay. The returned function cancels the call. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
}

export interface DeliveryAlarm {
  readonly note: (member: string, news: DeliveryNews) => void;
  /** Raises all pending alarms immediately. */
  readonly flush: () => void;
}

interface Noted {
  now: DeliveryNote;
  /** The last note that was reported to the controller. It is undefined if this is not known. */
  told: DeliveryNote | undefined;
  toldMs: number;
  /** The time at which `now` first differed from the reported note. This will be undefined if both are equal. */
  changedMs: number | undefined;
  /** This is true if more than the backlog has changed. */
  urgent: boolean;
  /** Cancels the pending alarm. It is undefined if there is no pending alarm. */
  cancel: (() => void) | undefined;
}

/**
 * Creates an alarm that limits how often deliveries are reported to the controller. Trouble is reported immediately,
 * but each subscription has at most one alarm in 10 s. A backlog is only reported after it has lasted for some time. If
 * the state returns to the reported state, no alarm is raised. The last change is always reported.
 */
export function createDeliveryAlarm({ raise, monotonicMs, setTimer }: DeliveryAlarmDeps): DeliveryAlarm {
  const noted = new Map<string, Noted>();

  function remember(member: string): Noted {
    const known = noted.get(member);
    const entry = known ?? {
      now: { trouble: '', backlog: '' },
      told: undefined,
      toldMs: Number.NEGATIVE_INFINITY,
      changedMs: undefined,
      urgent: false,
      cancel: undefined,
    };
    noted.delete(member);
    noted.set(member, entry);
    if (known === undefined && noted.size > MOST_REMEMBERED) {
      for (const [oldest, { cancel }] of noted) {
        if (cancel !== undefined) tell(oldest);
        noted.delete(oldest);
        break;
      }
    }
    return entry;
  }

  function tell(member: string): void {
    const entry = noted.get(member);
    if (entry === undefined) return;
    settle(entry);
    entry.told = entry.now;
    entry.toldMs = monotonicMs();
    raise(member);
  }

  return {
    note(member, { before, now }) {
      const entry = remember(member);
      // If both notes are equal, this is the first dead letter within an hour.
      const repeated = isSame(before, now);
      // Another dispatcher has processed the subscription in the meantime, and may have reported a different state.
      if (repeated || !isSame(entry.now, before)) entry.told = undefined;
      entry.now = now;
      if (entry.told !== undefined && isSame(entry.told, now)) return settle(entry);
      const nowMs = monotonicMs();
      entry.changedMs ??= nowMs;
      entry.urgent ||= repeated || before.trouble !== now.trouble;
      if (entry.told?.trouble === now.trouble) entry.urgent = false;
      entry.cancel?.();
      const lastsMs = entry.urgent ? 0 : Math.min(QUIET_MS, entry.changedMs + LATEST_MS - nowMs);
      const waitMs = Math.max(entry.toldMs + QUIET_MS - nowMs, lastsMs);
      if (waitMs <= 0) tell(member);
      else entry.cancel = setTimer(() => tell(member), waitMs);
    },
    flush() {
      for (const [member, { cancel }] of noted) if (cancel !== undefined) tell(member);
    },
  };
}

function settle(entry: Noted): void {
  entry.cancel?.();
  entry.cancel = undefined;
  entry.changedMs = undefined;
  entry.urgent = false;
}

function isSame(one: DeliveryNote, other: DeliveryNote): boolean {
  return one.trouble === other.trouble && one.backlog === other.backlog;
}
