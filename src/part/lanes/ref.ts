/**
 * A ref is the position that an event has in the log of its part. A ref has 11 hex characters for the milliseconds, and
 * 4 for the sequence (see `refs.lua`).
 */
const MS_CHARS = 11;
const LAST_MS = 16 ** MS_CHARS - 1;

/** The position that is before all events. */
export const NO_REF = '0'.repeat(15);

/** Returns the time at which the event was accepted, in milliseconds of the part's clock. */
export function msOfRef(ref: string): number {
  return Number.parseInt(ref.slice(0, MS_CHARS), 16);
}

/**
 * Returns the first ref for a millisecond. Used for times that are not positions, e.g. from a status. Times without a
 * ref, such as those before 1970, result in the nearest ref, because a ref of another length would damage lists.
 */
export function refOfMs(ms: number): string {
  const nearest = Math.min(Math.max(0, Math.trunc(ms) || 0), LAST_MS);
  return `${nearest.toString(16).padStart(MS_CHARS, '0')}0000`;
}

/** Returns the ref for an entry of the log. */
export function refOfId(id: string): string {
  const [ms = 0, sequence = 0] = id.split('-').map(Number);
  return ms.toString(16).padStart(MS_CHARS, '0') + sequence.toString(16).padStart(4, '0');
}

/** Returns the id that the event has in the part's log. */
export function streamIdOf(ref: string): string {
  return `${msOfRef(ref)}-${Number.parseInt(ref.slice(MS_CHARS), 16)}`;
}
