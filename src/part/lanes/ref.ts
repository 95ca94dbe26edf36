/** A ref is the position of an event in its part's log: 11 hex characters of the ms, 4 of the sequence; see `refs.lua`. */
const MS_CHARS = 11;

/** Position before all events. */
export const NO_REF = '0'.repeat(15);

/** When the event was accepted, ms of the part's clock. */
export function msOfRef(ref: string): number {
  return Number.parseInt(ref.slice(0, MS_CHARS), 16);
}

/** Returns the first ref of a millisecond. Used for times that are not positions, e.g. from a status. */
export function refOfMs(ms: number): string {
  return `${ms.toString(16).padStart(MS_CHARS, '0')}0000`;
}

/** Ref of an entry of the log. */
export function refOfId(id: string): string {
  const [ms = 0, sequence = 0] = id.split('-').map(Number);
  return ms.toString(16).padStart(MS_CHARS, '0') + sequence.toString(16).padStart(4, '0');
}

/** Id of the event in the part's log. */
export function streamIdOf(ref: string): string {
  return `${msOfRef(ref)}-${Number.parseInt(ref.slice(MS_CHARS), 16)}`;
}
