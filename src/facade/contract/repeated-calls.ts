import { PROBLEMS } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KeyedCall, KeyedCalls } from '../../idempotency/keyed-calls.ts';
import { fromRedis } from '../objects/redis-failures.ts';
import type { Answer } from './route.ts';

/** Maximum number of seconds after which we suggest repeating a call that is being performed. */
const MOST_RETRY_SECONDS = 5;

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1_000));

/**
 * Performs a call with an Idempotency-Key once, and returns the same answer to each repetition. A call that was
 * interrupted is completed by its repetition, which gets the same seed. Refused calls free their key.
 *
 * @throws Refusal 422 `idempotency_conflict` if the key belongs to another request, 409 `idempotency_in_progress` while
 *   the call is being performed, and 429 `rate_limited` if the owner has used too many keys
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
    // A call that failed in another way may have had an effect, which its repetition completes.
    const isRefused = error instanceof Refusal && PROBLEMS[error.code].status < 500;
    await end(isRefused ? 'forget' : 'release').catch(() => {});
    throw error;
  }
  const { status, body, headers } = answer;
  await fromRedis(end('done', JSON.stringify({ status, body, headers })));
  return answer;
}
