import type { DeliveryNews, DeliveryNote } from '../../redis/delivery-news.ts';

/** One alarm of a subscription in this time, ms; also how long a backlog has to last before it is worth one. */
const QUIET_MS = 10_000;
/** A backlog that changes again and again is reported after so long, ms. */
const LATEST_MS = 60_000;
/** Subscriptions that are remembered; the ones that changed longest ago are forgotten. */
const MOST_REMEMBERED = 20_000;

export interface DeliveryAlarmDeps {
  /** Tells the controller to look at the subscription with this member. */
  readonly raise: (member: string) => void;
  /** A clock that never goes backward, ms. */
  readonly monotonicMs: () => number;
  /** Calls back once, after so many ms; the answer cancels it. */
  readonly setTimer: (run: () => void, delayMs: number) => () => void;
}

export interface DeliveryAlarm {
  readonly note: (member: string, news: DeliveryNews) => void;
  /** Raises at once what waits. */
  readonly flush: () => void;
}

interface Noted {
  now: DeliveryNote;
  /** What the controller was last told of; undefined: unknown. */
  told: DeliveryNote | undefined;
  toldMs: number;
  /** When `now` began to differ from what was told; undefined: it does not. */
  changedMs: number | undefined;
  /** More than the backlog changed since. */
  urgent: boolean;
  /** Cancels the alarm that is to come; undefined: none is. */
  cancel: (() => void) | undefined;
}

/**
 * Raises alarms about deliveries so that they are no flood: trouble at once, at most one alarm of a subscription in 10 s,
 * and a backlog only when it has lasted. What goes back to what was told raises none. Whatever changed last is told.
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
      // The same twice is the first dead letter of an hour.
      const repeated = isSame(before, now);
      // Another dispatcher worked on it meanwhile, and may have told of it.
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
