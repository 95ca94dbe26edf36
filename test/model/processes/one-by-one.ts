import type { RedisClient } from '../../../src/redis/client.ts';

/** Performs all actions caused by the last response. */
const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/**
 * A client that sends a call only when the one before was answered, and whoever waited for that has gone on. What several
 * do at the same time is then done in the same order each time, however fast Redis answers, and whatever scripts it knows.
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
