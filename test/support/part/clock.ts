import type { ScriptClient } from '../../../src/part/call.ts';
import type { NamedCall, NamedScript } from '../../../src/redis/named-scripts.ts';

/** The milliseconds of a test clock, which are appended to the other arguments. */
const TEST_TIME = `local testMs = tonumber(table.remove(ARGV))
local testTime = { math.floor(testMs / 1000), testMs % 1000 * 1000 }
`;

/**
 * A client whose scripts go by a test's clock instead of TIME. The scripts themselves don't have this argument: this
 * changes their text and is not part of the program.
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
