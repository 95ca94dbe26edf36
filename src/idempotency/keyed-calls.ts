import { hash, randomBytes } from 'node:crypto';
import type { KeyRing } from '../core/delivery/key-ring.ts';
import { open, SealError, seal } from '../core/delivery/seal.ts';
import type { RedisClient } from '../redis/client.ts';
import { callKeys } from '../redis/keys.ts';
import { readNamedScript } from '../redis/named-scripts.ts';

const BEGIN = readNamedScript(new URL('begin-call.lua', import.meta.url));
const END = readNamedScript(new URL('end-call.lua', import.meta.url));
/** The time for which a call is kept, starting with its first request. */
const KEPT_MS = 24 * 3_600_000;
/** Longer than a call can take. Whoever began the call is dead by then. */
const TURN_MS = 60_000;
/** The number of calls to keep for each owner. */
export const MOST_CALLS = 5_000;
/**
 * The number of calls to keep for each account. A call needs up to 5 KB, and an account can have thousands of owners.
 */
export const MOST_CALLS_OF_ACCOUNT = 20_000;

/** A call with an Idempotency-Key. */
export interface KeyedCall {
  /** The account of the owner. */
  readonly account: string;
  /** Public id of the workspace or integration that the key belongs to. */
  readonly owner: string;
  /** Keys of different operations are independent. */
  readonly operation: string;
  readonly key: string;
  /** The complete request, as JSON. */
  readonly request: string;
}

/**
 * RUN: perform the call and then end it. `seed` is the same for all attempts to perform it, and begins with the id of a
 * root key, followed by a dot. DONE: this was the response. BUSY: it is being performed. CONFLICT: the key belongs
 * to another request. MANY: there are too many calls of this owner or account.
 */
export type Begun =
  | { readonly answer: 'RUN'; readonly seed: string; readonly end: EndCall }
  | { readonly answer: 'DONE'; readonly text: string }
  | { readonly answer: 'BUSY' | 'MANY'; readonly leftMs: number }
  | { readonly answer: 'CONFLICT' };

/**
 * Ends a call. done: `text` is the response for repeated calls. forget: this attempt had no effect, and the key can be
 * used again unless an earlier attempt was interrupted. release: the call may have had an effect, and is performed
 * again when it is repeated.
 */
export type EndCall = (how: 'done' | 'forget' | 'release', text?: string) => Promise<void>;

/** Calls with an Idempotency-Key, which are performed once, with the same response for 24 hours. */
export interface KeyedCalls {
  readonly begin: (call: KeyedCall) => Promise<Begun>;
}

/** Keeps calls in Redis. Responses may contain secrets and are encrypted. */
export function createKeyedCalls(redis: RedisClient, keys: KeyRing, nowMs: () => number): KeyedCalls {
  return {
    async begin({ account, owner, operation, key, request }) {
      const name = hash('sha256', JSON.stringify([owner, operation, key]), 'hex').slice(0, 32);
      const { call, ...lists } = callKeys(account, owner);
      const names = { call: call(name), ...lists };
      const context = `idempotency/${owner}/${name}`;
      const turn = randomBytes(16).toString('hex');
      const args = {
        now: nowMs(),
        name,
        request: hash('sha256', request, 'hex'),
        // Since attempts after a rotation must derive the same values from it, it specifies the root key.
        seed: `${keys.first().id}.${randomBytes(16).toString('hex')}`,
        turn,
        turnMs: TURN_MS,
        ttlMs: KEPT_MS,
        most: MOST_CALLS,
        mostOfAccount: MOST_CALLS_OF_ACCOUNT,
      };
      const [word, value] = (await redis.runNamed(BEGIN, { keys: names, args })) as [Begun['answer'], string | number];
      if (word === 'BUSY' || word === 'MANY') return { answer: word, leftMs: Number(value) };
      if (word === 'DONE') return openAnswer(String(value));
      if (word === 'CONFLICT') return { answer: word };
      const end: EndCall = async (how, text = '') => {
        const answer = how === 'done' ? seal(keys.first().sealKeys, context, text) : '';
        await redis.runNamed(END, { keys: names, args: { name, turn, how, answer } });
      };
      return { answer: 'RUN', seed: String(value), end };

      function openAnswer(sealed: string): Begun {
        try {
          return { answer: 'DONE', text: open(keys, context, sealed).toString('utf8') };
        } catch (error) {
          // This response is lost because the root key was removed. Performing the call again would have a different
          // effect.
          if (error instanceof SealError) return { answer: 'CONFLICT' };
          throw error;
        }
      }
    },
  };
}
