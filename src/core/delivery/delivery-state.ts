import { ATTEMPT_OUTCOMES, type AttemptOutcome } from '../../api/delivery-status.ts';
import { isRef, refMs } from '../ids/refs.ts';

/** Fields holding the delivery state in a subscription's Redis hash (`lib/delivery.lua`). */
export const DELIVERY_FIELDS = [
  'delivery',
  'dead',
  'testsDead',
  'n:routed',
  'n:replayed',
  'n:tested',
  'n:delivered',
  'n:dead',
  'n:skipped',
  'n:expired',
] as const;

export type DeliveryFields = { readonly [F in (typeof DELIVERY_FIELDS)[number]]?: string | undefined };

/** A subscription's delivery state, as maintained by the data plane. */
export interface DeliveryState {
  /** Undefined before the first attempt. */
  readonly attempt: { readonly outcome: AttemptOutcome; readonly sinceMs: number } | undefined;
  /** The number of dead letters. Test events are not included. */
  readonly dead: number;
  /** The time at which the event of the newest dead letter was accepted, in milliseconds. */
  readonly youngestDeadMs: number | undefined;
  /** The first dead letter in the most recent hour that had any dead letters. */
  readonly firstDead: { readonly ms: number; readonly ref: string } | undefined;
  /** Can be `0`, `1+`, `10+`, and so on. */
  readonly backlog: string;
}

/** Reads a subscription's delivery state. Fields which are missing or can't be parsed are treated as empty. */
export function parseDeliveryState(fields: DeliveryFields): DeliveryState {
  const count = (field: keyof DeliveryFields): number => Number(fields[field]) || 0;
  const [, outcome = '', since = '', digits = '0'] = /^(\S+) (\d+) [01] (\d{1,2})$/.exec(fields.delivery ?? '') ?? [];
  const [, deadMs, first, youngest = ''] = /^(\d+) (\S+) (\S+)$/.exec(fields.dead ?? '') ?? [];
  const taken = count('n:routed') + count('n:replayed') + count('n:tested');
  const open = taken - count('n:delivered') - count('n:dead') - count('n:skipped') - count('n:expired');
  return {
    attempt: isOutcome(outcome) ? { outcome, sinceMs: Number(since) } : undefined,
    dead: Math.max(0, count('n:dead') - count('testsDead')),
    youngestDeadMs: isRef(youngest) ? refMs(youngest) : undefined,
    firstDead: first === undefined ? undefined : { ms: Number(deadMs), ref: first },
    // Events can also be ended by their retention period, which does not require an exchange. If an event is no longer
    // open, it is not waiting.
    backlog: powerOfTen(Math.min(Number(digits), open > 0 ? String(open).length : 0)),
  };
}

function isOutcome(word: string): word is AttemptOutcome {
  return Object.hasOwn(ATTEMPT_OUTCOMES, word);
}

/** @param digits number of digits in a count, or 0 for a count of 0 */
function powerOfTen(digits: number): string {
  return digits === 0 ? '0' : `1${'0'.repeat(digits - 1)}+`;
}

/** Rounds a count down to a power of ten, such as `0`, `1+`, `10+`, or `100+`, so that the status rarely changes. */
export function roundCount(count: number): string {
  return powerOfTen(count === 0 ? 0 : String(count).length);
}
