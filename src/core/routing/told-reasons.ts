import { NOT_ROUTED, type NotRoutedReason, notRoutedReason } from './reasons.ts';

/** Integrations that are named one by one for an event; of more, only those that had another reason than most. */
export const NAMED = 32;
/** Of those with another reason, at most as many are named; where there are more, nothing is said of those who are not. */
const EXCEPTIONS = 128;
/** Stands for all who are not named. */
const OTHERS = '*';

/**
 * What is stored of an event about who did not get it: `int:code`, comma-separated. Where they are many, `*:code` tells
 * the most common reason once, for whoever subscribed and is not named; so that an event costs the same with 10,000
 * subscribers as with 100. Later texts about the same event are appended with a comma.
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

/** The reason that is told of this integration by name; the last one counts. */
export function toldReason(text: string, integration: string): NotRoutedReason | undefined {
  return lastOf(text, integration);
}

/** The reason that is told of all who subscribed and are not named. */
export function reasonOfOthers(text: string): NotRoutedReason | undefined {
  return lastOf(text, OTHERS);
}

/**
 * Why this integration did not get an event, as far as it was noted.
 *
 * @param routedBeforeMs the event was routed before this
 * @param subscribedMs since when the integration's subscription is there; undefined: it has none
 */
export function notedReason(
  text: string,
  integration: string,
  { routedBeforeMs, subscribedMs }: { readonly routedBeforeMs: number; readonly subscribedMs: number | undefined },
): NotRoutedReason | undefined {
  const subscribedThen = subscribedMs !== undefined && subscribedMs <= routedBeforeMs;
  return toldReason(text, integration) ?? (subscribedThen ? reasonOfOthers(text) : undefined);
}
