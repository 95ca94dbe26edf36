import { isRef, refOf, streamIdOfRef } from '../../core/ids/refs.ts';
import { msOfRef, refOfMs } from '../lanes/ref.ts';

/**
 * The refs of an inbox (which are used by REST and in event ids) and the refs of a part use different bases. In both of
 * them, the last sequence numbers of a millisecond are used for test events.
 */
const FIRST_TEST = 0xffe0;
const FIRST_INBOX_TEST = 2 ** 25 - 32;
const MS_CHARS = 11;
const SEQUENCE_CHARS = 4;

/** Returns the ref of an inbox for a ref of a part. */
export function inboxRefOf(ref: string): string {
  const sequence = Number.parseInt(ref.slice(MS_CHARS), 16);
  return refOf(msOfRef(ref), sequence < FIRST_TEST ? sequence : FIRST_INBOX_TEST + sequence - FIRST_TEST);
}

/**
 * Returns the ref in a part for a ref in an inbox, or undefined if no event of a part can have it.
 */
export function partRefOf(inboxRef: string): string | undefined {
  if (!isRef(inboxRef)) return undefined;
  const [ms, sequence] = streamIdOfRef(inboxRef).split('-').map(Number) as [number, number];
  const own = sequence < FIRST_INBOX_TEST ? sequence : FIRST_TEST + sequence - FIRST_INBOX_TEST;
  if (ms >= 16 ** MS_CHARS || (sequence < FIRST_INBOX_TEST && sequence >= FIRST_TEST)) return undefined;
  return ms.toString(16).padStart(MS_CHARS, '0') + own.toString(16).padStart(SEQUENCE_CHARS, '0');
}

/** Returns the last ref of a part that is not after a ref of an inbox. */
export function partBoundOf(inboxRef: string): string {
  const own = partRefOf(inboxRef);
  if (own !== undefined) return own;
  const ms = Number.parseInt(streamIdOfRef(inboxRef), 10);
  return ms >= 16 ** MS_CHARS ? 'f'.repeat(MS_CHARS + SEQUENCE_CHARS) : refOfMs(ms + 1);
}
