import type { RedisClient } from './client.ts';
import { sandboxKeys } from './keys.ts';
import { isReading, type ScriptName } from './scripts.ts';

/** Plain commands that a run's client lets through: they write nothing. */
const READING = new Set([
  'exists',
  'get',
  'hexists',
  'hget',
  'hlen',
  'hmget',
  'smembers',
  'xlen',
  'xrange',
  'zcard',
  'zrange',
]);

/**
 * Redis as one sandbox run sees it: every key lies in the run's own slot, and ends with the run, whatever script makes it.
 * What is built upon a client works on the run then as it does on production, and cannot reach production.
 *
 * @param endsMs when the run ends, ms of Redis's clock
 * @throws for a plain command that writes: its key would stay for ever
 */
export function createSandboxClient(redis: RedisClient, tenant: string, run: string, endsMs: number): RedisClient {
  const { of } = sandboxKeys(tenant, run);
  const own = (key: string): string => (key.startsWith('{s:') ? key : of(key));
  function prepare(name: ScriptName, keys: readonly string[], args: Parameters<RedisClient['run']>[2]) {
    const named = keys.map(own);
    return isReading(name)
      ? ([name, named, args] as const)
      : ([`${name}~` as ScriptName, named, [...args, endsMs]] as const);
  }
  const refuse = (): never => {
    throw new Error('a script that names its keys would reach production');
  };
  return {
    ...redis,
    run: (name, keys, args) => redis.run(...prepare(name, keys, args)),
    runBuffers: (name, keys, args) => redis.runBuffers(...prepare(name, keys, args)),
    runNamed: refuse,
    runNamedBuffers: refuse,
    call: (command, key, ...args) => {
      if (!READING.has(command.toLowerCase())) throw new Error(`${command} would write without an end`);
      return redis.call(command, own(key), ...args);
    },
    readHash: key => redis.readHash(own(key)),
    // Nothing of a run is told to others but by its own hint.
    publish: async () => {},
    subscribe: () => {},
  };
}
