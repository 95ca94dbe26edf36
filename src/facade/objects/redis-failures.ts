import { Refusal } from '../../http/refusal.ts';

/** Returns the response of Redis and converts errors to a 503 status. @throws Refusal `unavailable` */
export async function fromRedis<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal('unavailable', { cause });
  }
}
