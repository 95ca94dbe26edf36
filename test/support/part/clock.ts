import type { ScriptClient } from '../../../src/part/call.ts';
import type { NamedCall, NamedScript } from '../../../src/redis/named-scripts.ts';

/** The milliseconds of a test clock, which are appended to the other arguments. */
const TEST_TIME = `local testMs = tonumber(table.remove(ARGV))
local testTime = { math.floor(testMs / 1000), testMs % 1000 * 1000 }
`;

/**
 * Returns a client whose scripts use the clock of a test instead of TIME. The scripts of the program do not have this
 * argument, so this changes their text.
 */
export function withClock(redis: ScriptClient, nowMs: () => number): ScriptClient {
  const changed = new Map<NamedScript, NamedScript>();
  function change(script: NamedScript): NamedScript {
    let altered = changed.get(script);
    if (altered === undefined) {
      const source = script.source.replace('\n', `\n${TEST_TIME}`).replaceAll("redis.call('TIME')", 'testTime');
      altered = { ...script, source, takesMore: true };
      changed.set(script, altered);
    }
    return altered;
  }
  const behind = (call: NamedCall): NamedCall => ({ ...call, more: [...(call.more ?? []), nowMs()] });
  return {
    runNamed: (script, call) => redis.runNamed(change(script), behind(call)),
    runNamedBuffers: (script, call) => redis.runNamedBuffers(change(script), behind(call)),
  };
}
