import type { RedisClient, Reply } from '../../../src/redis/client.ts';
import { withClock } from '../../support/part/clock.ts';

/** The crash of a process at its n-th call to Redis (from 1). The call is not sent, or its response is not received. */
export interface Death {
  readonly call: number;
  readonly sent: boolean;
}

/**
 * A Sluice process as seen by Redis: its calls until it crashes. After that, no calls are sent, and no responses are
 * received.
 */
export interface Process {
  readonly redis: RedisClient;
  /** Runs a step of the process until its end (`true`), or until it crashes (`false`). */
  readonly live: (step: () => Promise<void>, death: Death | undefined) => Promise<boolean>;
}

/** The client with scripts that use the clock of the history. */
export function onClock(redis: RedisClient, nowMs: () => number): RedisClient {
  return { ...redis, ...withClock(redis, nowMs) };
}

export function createProcess(redis: RedisClient): Process {
  let calls = 0;
  let death: Death | undefined;
  let dead = false;
  let die: () => void = () => {};

  /** A crashed process does not receive any responses, not even to earlier calls. */
  async function answered<R>(answer: Promise<R>): Promise<R> {
    try {
      return await answer;
    } finally {
      if (dead) await new Promise(() => {});
    }
  }

  function mortal<A extends readonly unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) => {
      if (dead) return new Promise(() => {});
      calls++;
      if (death === undefined || calls < death.call) return answered(call(...args));
      dead = true;
      const sent = death.sent ? call(...args).then(die, die) : Promise.resolve().then(die);
      return sent.then(() => new Promise<R>(() => {}));
    };
  }

  return {
    redis: {
      ...redis,
      run: mortal(redis.run),
      runBuffers: mortal(redis.runBuffers),
      runNamed: mortal(redis.runNamed),
      runNamedBuffers: mortal(redis.runNamedBuffers),
      call: mortal(
        (command: string, key: string, ...args: (string | number | Buffer)[]): Promise<Reply> =>
          redis.call(command, key, ...args),
      ),
      readHash: mortal(redis.readHash),
      callAll: mortal((command: string, ...args: (string | number | Buffer)[]) => redis.callAll(command, ...args)),
      publish: mortal(redis.publish),
    },
    async live(step, at) {
      calls = 0;
      death = at;
      const died = new Promise<false>(resolve => {
        die = () => resolve(false);
      });
      const done = await Promise.race([step().then(() => true), died]);
      death = undefined;
      return done;
    },
  };
}
