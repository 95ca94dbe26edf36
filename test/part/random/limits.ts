import type { ScriptClient } from '../../../src/part/call.ts';
import type { NamedCall, NamedScript } from '../../../src/redis/named-scripts.ts';

/** Script limits that small histories should reach: the original text, and its replacement. */
const SMALL: readonly (readonly [string, string])[] = [
  ['local REFERENCES = 512', 'local REFERENCES = 6'],
  [
    'local ENTRIES, PAGE, ENOUGH, REFERENCES, OPEN, CLOSED = 256, 64, 64, 512,',
    'local ENTRIES, PAGE, ENOUGH, REFERENCES, OPEN, CLOSED = 3, 2, 4, 6,',
  ],
  ['local ENTRY, GROUP = 23, 128', 'local ENTRY, GROUP = 23, 2'],
  ['local MOST_UNPARKED, LONGEST_MS = 1000,', 'local MOST_UNPARKED, LONGEST_MS = 2,'],
  [
    'local OPENS_AFTER, OPENS_WITHIN_MS, OPENS_AT_ONCE = 10, 30000, 100',
    'local OPENS_AFTER, OPENS_WITHIN_MS, OPENS_AT_ONCE = 3, 1000, 6',
  ],
  ['local FAILING_MS, LEAST_FAILURES = 432000000, 10', 'local FAILING_MS, LEAST_FAILURES = 60000, 4'],
  ['local ENTRIES, PAGE, POSITIONS = 128, 16, 256', 'local ENTRIES, PAGE, POSITIONS = 4, 2, 2'],
  ['local LOOKED, MOST_ENDED = 500, 100', 'local LOOKED, MOST_ENDED = 5, 2'],
  ['local PAGE, MOST_FINAL, MOST_TESTS = 100, 500, 8', 'local PAGE, MOST_FINAL, MOST_TESTS = 3, 2, 1'],
  ['local REFS, REF_BYTES, HEAD_BYTES = 16, 8, 8', 'local REFS, REF_BYTES, HEAD_BYTES = 3, 8, 8'],
  ['local MOST, CLAIMED_MS = 500, 30000', 'local MOST, CLAIMED_MS = 3, 30000'],
  ['math.max(0, #failed - 36)', 'math.max(0, #failed - 20)'],
  ["local RECOVERED, MOST_FAILED = '*', 20", "local RECOVERED, MOST_FAILED = '*', 3"],
  ['local CHUNK_BYTES, MOST_CHUNKS = 1536, 255', 'local CHUNK_BYTES, MOST_CHUNKS = 60, 255'],
  ['local CHUNKS_AT_ONCE, MOST_SCANNED = 16, 98304', 'local CHUNKS_AT_ONCE, MOST_SCANNED = 2, 100'],
  ['local SLOTS = 32', 'local SLOTS = 2'],
];
export const LIMITS = {
  references: 6,
  group: 2,
  failed: 3,
  shortFailed: 20,
  opensAfter: 3,
  opensWithinMs: 1_000,
  opensAtOnce: 6,
  failingMs: 60_000,
  leastFailures: 4,
  hourMs: 3_600_000,
  /** The quota of a part that has none. */
  noLimit: 2 ** 40,
} as const;

/** A client whose scripts use small limits. */
export function withSmallLimits(redis: ScriptClient): ScriptClient {
  const changed = new Map<NamedScript, NamedScript>();
  function change(script: NamedScript): NamedScript {
    let altered = changed.get(script);
    if (altered === undefined) {
      let { source } = script;
      for (const [text, small] of SMALL) source = source.replace(text, small);
      altered = { ...script, source };
      changed.set(script, altered);
    }
    return altered;
  }
  return {
    runNamed: (script: NamedScript, call: NamedCall) => redis.runNamed(change(script), call),
    runNamedBuffers: (script: NamedScript, call: NamedCall) => redis.runNamedBuffers(change(script), call),
  };
}

/** Returns the limits that are missing from the scripts. If there are any, update `SMALL`. */
export function lostLimits(scripts: string): string[] {
  return SMALL.map(([text]) => text).filter(text => !scripts.includes(text));
}
