import { LIMITS } from '../limits.ts';
import type { Health, Reference } from './reference.ts';

const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1_000, 60_000];

/** The effect of the attempts of a slot that ended in the same call on its endpoint. */
export interface Outcomes {
  failed: number;
  delivered: boolean;
  gone: boolean;
  readonly entries: Set<string>;
}

/** Returns an endpoint's health, except data from before its owner enabled it. */
function currentHealth(of: Reference, slot: string): Health | undefined {
  const health = of.health.get(slot);
  if (health === undefined) return undefined;
  const since = health.disabled === '-' ? health.since : Number.parseInt(health.disabled, 10);
  return (of.subs.get(slot)?.enabledMs ?? 0) <= since ? health : undefined;
}

/** Returns true if the endpoint is disabled because of its health. Its row can still say that it is open. */
export const isDisabled = (of: Reference, slot: string): boolean => (currentHealth(of, slot)?.disabled ?? '-') !== '-';

/** Returns an endpoint's health. Removes data from before its owner enabled it. */
export function healthOf(of: Reference, slot: string): Health | undefined {
  const health = currentHealth(of, slot);
  if (health === undefined) of.health.delete(slot);
  return health;
}

function noteFailures(of: Reference, slot: string, { failed, gone, entries }: Outcomes): boolean {
  const { nowMs } = of;
  const fresh = { since: nowMs, failures: 0, next: 0, pause: 0, disabled: '-', probe: '' };
  const health = healthOf(of, slot) ?? fresh;
  of.health.set(slot, health);
  if (health.disabled !== '-') return false;
  health.failures += failed;
  const failsForLong = nowMs - health.since >= LIMITS.failingMs && health.failures >= LIMITS.leastFailures;
  if (gone || failsForLong) {
    health.disabled = `${nowMs}${gone ? 'g' : 'f'}`;
    return true;
  }
  if (health.pause === 0) {
    const opens = health.failures >= LIMITS.opensAfter && nowMs - health.since >= LIMITS.opensWithinMs;
    if (opens || health.failures >= LIMITS.opensAtOnce) {
      health.pause = FIRST_PAUSE_MS;
      health.next = nowMs + health.pause;
    }
  } else if (entries.has(health.probe)) {
    health.pause = Math.min(2 * health.pause, LONGEST_PAUSE_MS);
    health.next = nowMs + health.pause;
    health.probe = '';
  }
  return false;
}

/** Updates an endpoint's health. Returns true if this disables the endpoint. */
export function noteOutcomes(of: Reference, slot: string, outcomes: Outcomes): boolean {
  if (!of.subs.has(slot)) return false;
  const { failed, delivered, gone, entries } = outcomes;
  if (gone || (failed > 0 && !delivered)) return noteFailures(of, slot, outcomes);
  const health = healthOf(of, slot);
  if (health === undefined || health.disabled !== '-') return false;
  if (delivered) of.health.delete(slot);
  else if (entries.has(health.probe)) {
    health.next = of.nowMs;
    health.probe = '';
  }
  return false;
}

/** Records that a probe was claimed while the breaker is open. */
export function noteProbe({ health, nowMs }: Reference, slot: string, entry: string): void {
  const h = health.get(slot);
  if (h === undefined) return;
  if (nowMs - h.next > 10 * h.pause) h.pause = FIRST_PAUSE_MS / 2;
  h.next = nowMs + LONGEST_PAUSE_MS;
  h.probe = entry;
}
