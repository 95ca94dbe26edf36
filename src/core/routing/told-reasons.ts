import { NOT_ROUTED, type NotRoutedReason, notRoutedReason } from './reasons.ts';

/** Maximum number of integrations to name for an event. Beyond this, only those with an uncommon reason are named. */
export const NAMED = 32;
/**
 * Maximum number of named integrations with an uncommon reason. Beyond this, nothing is stored for the unnamed ones.
 */
const EXCEPTIONS = 128;
/** Represents all unnamed integrations. */
const OTHERS = '*';

/**
 * Encodes why integrations didn't receive an event, as a comma-separated list of `int:code`. If there are too many,
 * `*:code` stores the most common reason just once, on behalf of all subscribed integrations that aren't named. This
 * means that an event costs the same with 10,000 subscribers as it does with 100. Later texts about the same event are
 * appended with a comma.
 */
export function tellReasons(reasons: ReadonlyMap<string, NotRoutedReason>): string {
  const tell = (all: Iterable<readonly [string, NotRoutedReason]>) =>
    Array.from(all, ([integration, reason]) => `${integration}:${NOT_ROUTED[reason]}`);
  if (reasons.size <= NAMED) return tell(reasons).join(',');
  const counts = new Map<NotRoutedReason, number>();
  for (const reason of reasons.values()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const [most] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
  const exceptions: [string, NotRoutedReason][] = [];
  for (const each of reasons) if (each[1] !== most) exceptions.push(each);
  const others = exceptions.length > EXCEPTIONS ? [] : [`${OTHERS}:${NOT_ROUTED[most]}`];
  return [...others, ...tell(exceptions.slice(0, EXCEPTIONS))].join(',');
}

function lastOf(text: string, name: string): NotRoutedReason | undefined {
  const code = text
    .split(',')
    .map(each => each.split(':'))
    .findLast(([of]) => of === name)?.[1];
  return code === undefined ? undefined : notRoutedReason(code);
}

/** Returns the reason stored for this integration by name. If there are several, the last one counts. */
export function toldReason(text: string, integration: string): NotRoutedReason | undefined {
  return lastOf(text, integration);
}

/** Returns the reason stored for all subscribed integrations that aren't named. */
export function reasonOfOthers(text: string): NotRoutedReason | undefined {
  return lastOf(text, OTHERS);
}

/**
 * Returns the recorded reason why this integration did not receive an event.
 *
 * @param routedBeforeMs the event was routed before this time
 * @param subscribedMs when the integration subscribed, or undefined without a subscription
 */
export function notedReason(
  text: string,
  integration: string,
  { routedBeforeMs, subscribedMs }: { readonly routedBeforeMs: number; readonly subscribedMs: number | undefined },
): NotRoutedReason | undefined {
  const subscribedThen = subscribedMs !== undefined && subscribedMs <= routedBeforeMs;
  return toldReason(text, integration) ?? (subscribedThen ? reasonOfOthers(text) : undefined);
}
