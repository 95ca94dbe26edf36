import type { DeliveryNews, DeliveryNote } from '../../plane/delivery-news.ts';

/**
 * The minimum time between two alarms for the same subscription, in milliseconds. A backlog also needs to persist for
 * this long before we report it.
 */
const QUIET_MS = 10_000;
/** The time in milliseconds after which a constantly changing backlog is reported anyway. */
const LATEST_MS = 60_000;
/**
 * The maximum number of subscriptions kept in memory. If there are more, those that have not changed for the longest
 * time are dropped.
 */
const MOST_REMEMBERED = 20_000;

export interface DeliveryAlarmDeps {
  /** Asks the controller to check the subscription identified by this member. */
  readonly raise: (member: string) => void;
  /** The time of the monotonic clock, in milliseconds. */
  readonly monotonicMs: () => number;
  /** Calls `run` a single time after the delay. Use the returned function to cancel. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
}

export interface DeliveryAlarm {
  readonly note: (member: string, news: DeliveryNews) => void;
  /** Raises all pending alarms immediately. */
  readonly flush: () => void;
}

interface Noted {
  now: DeliveryNote;
  /** The last note that was reported to the controller. If it is not known, this is undefined. */
  reported: DeliveryNote | undefined;
  reportedMs: number;
  /** The time at which `now` first differed from the reported note. If both are the same, this is undefined. */
  changedMs: number | undefined;
  /** True if anything except for the backlog has changed. */
  urgent: boolean;
  /** If there is a pending alarm, it is canceled. */
  cancel: (() => void) | undefined;
}

/**
 * Creates an alarm that limits the rate at which deliveries are reported to the controller. Trouble is reported
 * immediately, but no more than once every 10 s for a given subscription. A backlog will only be reported once it has
 * lasted for some time. No alarm is raised if a subscription returns to its last reported state. The final change is
 * always reported.
 */
export function createDeliveryAlarm({ raise, monotonicMs, setTimer }: DeliveryAlarmDeps): DeliveryAlarm {
  const noted = new Map<string, Noted>();

  function remember(member: string): Noted {
    const known = noted.get(member);
    const entry = known ?? {
      now: { trouble: '', backlog: '' },
      reported: undefined,
      reportedMs: Number.NEGATIVE_INFINITY,
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
    entry.reported = entry.now;
    entry.reportedMs = monotonicMs();
    raise(member);
  }

  return {
    note(member, { before, now }) {
      const entry = remember(member);
      // Equal notes mean that this is the first dead letter within an hour.
      const repeated = isSame(before, now);
      // In the meantime, the subscription was processed by another dispatcher, which may have reported a different
      // state.
      if (repeated || !isSame(entry.now, before)) entry.reported = undefined;
      entry.now = now;
      if (entry.reported !== undefined && isSame(entry.reported, now)) return settle(entry);
      const nowMs = monotonicMs();
      entry.changedMs ??= nowMs;
      entry.urgent ||= repeated || before.trouble !== now.trouble;
      if (entry.reported?.trouble === now.trouble) entry.urgent = false;
      entry.cancel?.();
      const lastsMs = entry.urgent ? 0 : Math.min(QUIET_MS, entry.changedMs + LATEST_MS - nowMs);
      const waitMs = Math.max(entry.reportedMs + QUIET_MS - nowMs, lastsMs);
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
