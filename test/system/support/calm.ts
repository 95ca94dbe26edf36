import { setTimeout as delay } from 'node:timers/promises';

/** What was counted of an event is folded some seconds after it, and once more looked for. */
const CALM_MS = 7_000;
const WITHIN_MS = 40_000;

/**
 * Waits until what `count` reads has stayed as it is for some seconds: everything that events have left to be written is.
 *
 * @param count a number that every write raises, such as Redis's `rdb_changes_since_last_save`
 */
export async function untilCalm(count: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  let [last, sinceMs] = [await count(), startedMs];
  while (performance.now() - sinceMs < CALM_MS) {
    if (performance.now() - startedMs > WITHIN_MS) throw new Error(`something is written again and again: ${last}`);
    await delay(250);
    const now = await count();
    if (now !== last) [last, sinceMs] = [now, performance.now()];
  }
}
