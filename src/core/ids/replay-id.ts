import { createHash } from 'node:crypto';
import { crockford } from './ids.ts';

/**
 * Returns the id of a replay, which is unique within its integration. An `Idempotency-Key` made up of 1 to 64 letters, digits, `_` and `-` is used as is, while
 * any other key is hashed. Without a key, the id is derived from the request, which keeps a repeated call from starting
 * a second replay.
 */
export function replayIdOf(idempotencyKey: string | undefined, inbox: string, selection: object): string {
  if (idempotencyKey !== undefined && /^[\w-]{1,64}$/.test(idempotencyKey)) return idempotencyKey;
  const said = idempotencyKey === undefined ? JSON.stringify([inbox, selection]) : `key:${idempotencyKey}`;
  return `rpl_${crockford(createHash('sha256').update(said, 'utf8').digest(), 20)}`;
}
