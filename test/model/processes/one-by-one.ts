import type { RedisClient } from '../../../src/redis/client.ts';

/** Performs all actions caused by the last response. */
const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/**
 * A client that sends a call only after the previous call has received its response, and its caller has continued. This
 * makes concurrent work happen in the same order each time, regardless of the speed of Redis and of the scripts that it
 * knows.
 */
export function oneByOne(redis: RedisClient): RedisClient {
  let last: Promise<unknown> = Promise.resolve();
  function behind<A extends readonly unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) => {
      const answer = last.then(() => call(...args));
      last = answer.then(turn, turn);
      return answer;
    };
  }
  return {
    ...redis,
    run: behind(redis.run),
    runBuffers: behind(redis.runBuffers),
    runNamed: behind(redis.runNamed),
    runNamedBuffers: behind(redis.runNamedBuffers),
    call: behind(redis.call),
    readHash: behind(redis.readHash),
    callAll: behind(redis.callAll),
    publish: behind(redis.publish),
  };
}
