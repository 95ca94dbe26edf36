import { Refusal } from '../../http/refusal.ts';

/** Returns the result of a call to Redis. Converts errors to a 503. @throws Refusal `unavailable` */
export async function fromRedis<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal('unavailable', { cause });
  }
}
