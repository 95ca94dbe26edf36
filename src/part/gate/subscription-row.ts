import { valueWithoutRoom } from '../../core/routing/route-limits.ts';

/**
 * A subscription's desired state, in the format that is used by the scripts. See `lanes/counts.lua` for the
 * fields.
 */
export interface SubscriptionRow {
  /** open: events are routed. paused: events wait in the log. closed: no events are routed. */
  readonly route: 'open' | 'paused' | 'closed';
  /** open: attempts are claimed. held: events wait in their lanes, e.g. because there is no endpoint. */
  readonly send: 'open' | 'held';
  readonly unordered: boolean;
  /** The number of attempts in flight at the same time, from 1 to 99,999. */
  readonly cap: number;
  /** The number of attempts that can be started in a second, from 1 to 99,999. If there is no limit, this is absent. */
  readonly maxPerSecond?: number;
  /** The time at which the owner re-enabled the endpoint. */
  readonly enabledMs?: number;
  /** The position at which routing starts. */
  readonly since: string;
  /** The version of its configuration. */
  readonly cfgv: string;
  readonly integration: string;
}

const ROUTES = { open: 'o', paused: 'p', closed: 'c' } as const;
const WORDS = { o: 'open', p: 'paused', c: 'closed' } as const;
const ROW = /^([opc])([oh])([ou])(\d{5})(\d{5})(\d{13})([0-9a-f]{15})(\S*) (\S*)$/;

const digits = (value: number, width: number) => String(value).padStart(width, '0');

/** @throws RangeError if a value has no place in a row */
export function rowText(row: SubscriptionRow): string {
  const flags = ROUTES[row.route] + (row.send === 'open' ? 'o' : 'h') + (row.unordered ? 'u' : 'o');
  const limits = digits(row.cap, 5) + digits(row.maxPerSecond ?? 0, 5) + digits(row.enabledMs ?? 0, 13);
  const text = `${flags}${limits}${row.since}${row.cfgv} ${row.integration}`;
  if (!ROW.test(text) || valueWithoutRoom(row) !== undefined) throw new RangeError(`not a subscription: ${text}`);
  return text;
}

/** If it is damaged, this is undefined. */
export function parseRow(text: string): SubscriptionRow | undefined {
  const [, route, send, order, cap, pace, enabled, since = '', cfgv = '', integration = ''] = ROW.exec(text) ?? [];
  if (route === undefined) return undefined;
  return {
    route: WORDS[route as 'o'],
    send: send === 'o' ? 'open' : 'held',
    unordered: order === 'u',
    cap: Number(cap),
    ...(Number(pace) > 0 ? { maxPerSecond: Number(pace) } : {}),
    ...(Number(enabled) > 0 ? { enabledMs: Number(enabled) } : {}),
    since,
    cfgv,
    integration,
  };
}
