import { createHash } from 'node:crypto';
import { crockford } from './ids.ts';

/**
 * Returns the id of a replay, which is unique for each integration. An `Idempotency-Key` consisting of 1 to 64 letters,
 * digits, `_` and `-` is used as the id. Any other key will be hashed. Without a key, the id is derived from the
 * request so that repeating a call does not start another replay.
 */
export function replayIdOf(idempotencyKey: string | undefined, inbox: string, selection: object): string {
  if (idempotencyKey !== undefined && /^[\w-]{1,64}$/.test(idempotencyKey)) return idempotencyKey;
  const input = idempotencyKey === undefined ? JSON.stringify([inbox, selection]) : `key:${idempotencyKey}`;
  return `rpl_${crockford(createHash('sha256').update(input, 'utf8').digest(), 20)}`;
}
