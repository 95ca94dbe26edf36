import { expect, test } from 'vitest';
import { countOperations, type DataPlaneOperations } from './counted-operations.ts';

/** Operations with results specified by the test, and their counts. */
function count(answer: unknown) {
  const counted: [string, number][] = [];
  const all = new Proxy({}, { get: () => async () => answer, ownKeys: () => ['start'] });
  const parts = { operations: all, recovery: all, replays: { start: async () => answer } } as never;
  return { counted, parts: countOperations(parts as DataPlaneOperations, (...each) => counted.push(each)) };
}

type Called = (parts: DataPlaneOperations) => Promise<unknown>;
const skip: Called = ({ operations }) => operations.skip({} as never, {} as never);
const skipUpTo: Called = ({ operations }) => operations.skipUpTo({} as never, '');
const acknowledge: Called = ({ operations }) => operations.acknowledge({} as never, []);
const pull: Called = ({ operations }) => operations.pull({} as never, { limit: 1 });
const recover: Called = ({ recovery }) => recovery.recover({} as never, { sinceMs: 0 });
const sendTest: Called = ({ recovery }) => recovery.sendTest({} as never);
const start: Called = ({ replays }) => replays.start('', undefined as never, {} as never, {} as never);

test.each<[Called, unknown, [string, number][]]>([
  [skip, 'OK', [['skipped', 1]]],
  [skip, 'delivered', []],
  [skipUpTo, { answer: 'OK', skipped: 7 }, [['skipped', 7]]],
  [skipUpTo, { answer: 'GONE' }, []],
  [acknowledge, { answer: 'OK', answers: ['OK', 'delivered', 'OK', 'UNKNOWN'] }, [['acknowledged', 2]]],
  [acknowledge, { answer: 'PUSHED' }, []],
  [pull, { answer: 'OK', events: [1, 2, 3] }, [['pulled', 3]]],
  [recover, { answer: 'OK', recovered: 4 }, [['recovered', 4]]],
  [recover, { answer: 'BAD_CURSOR' }, []],
  [sendTest, { answer: 'OK' }, [['tested', 1]]],
  [start, { answer: 'OK', events: 5, isRepeated: false }, [['replayed', 5]]],
  [start, { answer: 'OK', events: 5, isRepeated: true }, []],
  [start, { answer: 'SHORT' }, []],
])('counts the result and returns it: %s %j', async (call, answer, expected) => {
  const { counted, parts } = count(answer);
  expect(await call(parts)).toEqual(answer);
  expect(counted).toEqual(expected);
});
