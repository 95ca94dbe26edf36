import { ATTEMPT_OUTCOMES, type AttemptOutcome } from '../../api/delivery-status.ts';
import { isRef, refMs } from '../ids/refs.ts';

/** Fields of a subscription's hash in Redis with its delivery state (`lib/delivery.lua`). */
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

/** The delivery state of a subscription, as the data plane keeps it. */
export interface DeliveryState {
  /** undefined before the first attempt. */
  readonly attempt: { readonly outcome: AttemptOutcome; readonly sinceMs: number } | undefined;
  /** Number of dead letters, without test events. */
  readonly dead: number;
  /** When the event of the newest dead letter was accepted, ms. */
  readonly youngestDeadMs: number | undefined;
  /** The first dead letter of the last hour that had one. */
  readonly firstDead: { readonly ms: number; readonly ref: string } | undefined;
  /** `0`, `1+`, `10+` and so on. */
  readonly backlog: string;
}

/** Reads the delivery state of a subscription. Absent or unreadable fields mean that nothing has happened yet. */
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
    // Retention ends events without an exchange: an event that is no longer open does not wait.
    backlog: backlogOf(Math.min(Number(digits), open > 0 ? String(open).length : 0)),
  };
}

function isOutcome(word: string): word is AttemptOutcome {
  return Object.hasOwn(ATTEMPT_OUTCOMES, word);
}

/** @param digits of the number of waiting events; 0 for none */
function backlogOf(digits: number): string {
  return digits === 0 ? '0' : `1${'0'.repeat(digits - 1)}+`;
}
