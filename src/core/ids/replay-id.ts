import { createHash } from 'node:crypto';
import { crockford } from './ids.ts';

/**
 * Returns the id of a replay. An `Idempotency-Key` of 1 to 64 letters, digits, `_` and `-` is the id itself; any other
 * key is hashed. Without a key the id derives from the request: the same call is the same replay, charged once.
 */
export function replayIdOf(idempotencyKey: string | undefined, inbox: string, selection: object): string {
  if (idempotencyKey !== undefined && /^[\w-]{1,64}$/.test(idempotencyKey)) return idempotencyKey;
  const said = idempotencyKey === undefined ? JSON.stringify([inbox, selection]) : `key:${idempotencyKey}`;
  return `rpl_${crockford(createHash('sha256').update(said, 'utf8').digest(), 20)}`;
}
