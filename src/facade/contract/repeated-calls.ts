import { PROBLEMS } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KeyedCall, KeyedCalls } from '../../idempotency/keyed-calls.ts';
import { callerKey } from '../auth/identity.ts';
import { fromRedis } from '../objects/redis-failures.ts';
import type { Access, Answer, Call, Route } from './route.ts';

const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;
/** The maximum number of seconds after which we suggest repeating a call that is being performed. */
const MOST_RETRY_SECONDS = 5;

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1_000));

/** Returns the Idempotency-Key of a request. @throws Refusal 422 `invalid_request` if it is not a valid key */
export function idempotencyKeyOf(headers: Readonly<Record<string, string | string[] | undefined>>): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && IDEMPOTENCY_KEY.test(key)) return key;
  const detail = 'must be 1 to 255 characters of visible ASCII, once';
  throw new Refusal('invalid_request', { errors: [{ header: 'idempotency-key', detail }] });
}

/**
 * Returns a call whose response should be stored using its Idempotency-Key. Keys belong to the workspace or
 * integration.
 */
export function keyedCallOf(
  route: Route,
  { idempotencyKey: key, identity, params, query, body }: Call<Access, string, unknown, unknown>,
  owner: { readonly publicId: string } | undefined,
  account: string | undefined,
): KeyedCall | undefined {
  if (route.idempotency !== 'answer' || key === undefined) return undefined;
  if (owner === undefined || account === undefined) return undefined;
  // Since a response may contain secrets, it must not be returned to any other caller.
  const request = JSON.stringify([callerKey(identity), params, query ?? {}, body ?? {}]);
  return { account, owner: owner.publicId, operation: route.operation, key, request };
}

/**
 * Performs a call that has an Idempotency-Key a single time. Repeated calls return the same response. If a call was
 * interrupted, repeating it will complete the call. To do this, it uses the same seed. A refused call frees its key,
 * unless an earlier attempt was interrupted.
 *
 * @throws Refusal 422 `idempotency_conflict` if the key belongs to another request, 409 `idempotency_in_progress` while
 *   the call is being performed, and 429 `rate_limited` if the owner or its account has used too many keys
 */
export async function performOnce(
  calls: KeyedCalls,
  call: KeyedCall,
  perform: (seed: string) => Promise<Answer>,
): Promise<Answer> {
  const begun = await fromRedis(calls.begin(call));
  switch (begun.answer) {
    case 'DONE':
      return JSON.parse(begun.text) as Answer;
    case 'CONFLICT':
      throw new Refusal('idempotency_conflict');
    case 'BUSY': {
      const retryAfter = Math.min(MOST_RETRY_SECONDS, seconds(begun.leftMs));
      throw new Refusal('idempotency_in_progress', { headers: { 'retry-after': `${retryAfter}` } });
    }
    case 'MANY':
      throw new Refusal('rate_limited', {
        detail:
          'Too many values of Idempotency-Key were used within 24 hours. Send fewer of them, or leave out the header.',
        headers: { 'retry-after': `${seconds(begun.leftMs)}` },
      });
    default:
  }
  const { seed, end } = begun;
  let answer: Answer;
  try {
    answer = await perform(seed);
  } catch (error) {
    // A call that failed for another reason may have had an effect. In this case, repeating it will complete the call.
    const isRefused = error instanceof Refusal && PROBLEMS[error.code].status < 500;
    await end(isRefused ? 'forget' : 'release').catch(() => {});
    throw error;
  }
  const { status, body, headers } = answer;
  await fromRedis(end('done', JSON.stringify({ status, body, headers })));
  return answer;
}
