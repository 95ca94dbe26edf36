import { describe, expect, test } from 'vitest';
import { type Actor, type Bounds, everySchedule, interleave } from './interleaving.ts';

const FAULTS: Actor['faults'] = ['crash', 'answer lost', 'not done'];

/** Makes this number of calls, and continues after failures. */
function caller(name: string, calls: number, faults: Actor['faults']): Actor {
  return {
    name,
    faults,
    run: async step => {
      for (let n = 0; n < calls; n++) await step(`${n}`, async () => {}).catch(() => {});
    },
  };
}

/** Runs the schedules of two actors with five calls each. Returns the calls of each schedule. */
async function schedules(bounds: Bounds, faults: Actor['faults'] = FAULTS): Promise<string[][]> {
  const traces: string[][] = [];
  await everySchedule(bounds, async choose => {
    traces.push([...(await interleave([caller('a', 5, faults), caller('b', 5, faults)], choose))]);
  });
  return traces;
}

const failureIn = (trace: readonly string[]) => trace.find(line => line.includes(':'));
const leftAfter = (trace: readonly string[]): string => {
  const [first = ''] = trace;
  return `${first[0]} is left after ${trace.findIndex(line => line[0] !== first[0])}`;
};
/** Returns the number of calls of the first actor, and the call that failed. */
const placesOf = (trace: readonly string[]): string => `${leftAfter(trace)}; ${failureIn(trace)?.split(':')[0]} fails`;
const sorted = (lines: readonly (string | undefined)[]) =>
  [...new Set(lines)].map(String).sort((a, b) => a.localeCompare(b));

describe('every schedule', () => {
  test('only with pre-emptions: each schedule once', async () => {
    const traces = await schedules({ preemptions: 1, faults: 0 }, []);
    // One actor starts, and is pre-empted after any of its calls, or after all of them.
    expect(traces).toHaveLength(2 * 5);
    expect(new Set(traces.map(trace => trace.join())).size).toBe(traces.length);
  });

  test('pairwise: each pre-emption is combined with each call that fails, and each call fails in each way', async () => {
    const all = await schedules({ preemptions: 1, faults: 1 });
    const some = await schedules({ preemptions: 1, faults: 1, pairwise: true });
    const every = new Set(all.map(trace => trace.join()));
    expect(some.filter(trace => !every.has(trace.join()))).toEqual([]);
    expect(sorted(some.map(placesOf))).toEqual(sorted(all.map(placesOf)));
    expect(sorted(some.map(failureIn))).toEqual(sorted(all.map(failureIn)));
    expect(some.length).toBeLessThan(all.length * 0.6);
  });

  test.each([
    { preemptions: 2, faults: 0 },
    { preemptions: 1, faults: 1 },
  ])('one in three with $preemptions pre-emptions and $faults faults: each pre-emption', async bounds => {
    const faults = bounds.faults > 0 ? FAULTS : [];
    const all = await schedules(bounds, faults);
    const some = await schedules({ ...bounds, oneIn: 3 }, faults);
    const every = new Set(all.map(trace => trace.join()));
    expect(some.filter(trace => !every.has(trace.join()))).toEqual([]);
    expect(sorted(some.map(leftAfter))).toEqual(sorted(all.map(leftAfter)));
    expect(sorted(some.map(failureIn))).toEqual(sorted(all.map(failureIn)));
    expect(some.length).toBeLessThan(all.length * 0.6);
  });
});
