import { Refusal } from '../../http/refusal.ts';

/** What Redis answers; where it is away, a 503: every call may be repeated. @throws Refusal `unavailable` */
export async function fromRedis<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal('unavailable', { cause });
  }
}
