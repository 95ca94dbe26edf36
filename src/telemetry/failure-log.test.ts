import { expect, test } from 'vitest';
import { createFailureLog } from './failure-log.ts';
import { createLogger } from './log.ts';

type Line = { readonly err?: { readonly stack: string }; readonly detail?: string; readonly suppressed?: number };

function start() {
  const clock = { ms: 0 };
  const lines: Line[] = [];
  const log = createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line) as Line) });
  const logFailure = createFailureLog({ repeats: { lines: 2, periodMs: 10_000 }, nowMs: () => clock.ms });
  /** Returns the lines that are written about this number of failures. */
  const fail = (count: number, [error]: readonly unknown[] = [new Error('timeout')], code = 'unavailable') => {
    lines.length = 0;
    for (let i = 0; i < count; i++) logFailure(log, 'warn', error, { code, requestId: i }, 'failed');
    return lines.map(({ err, detail, suppressed }) => [err === undefined ? detail : 'stack', suppressed]);
  };
  return { clock, fail, lines };
}

test('a cause is logged with its stack once a minute, and its other lines are limited and counted', () => {
  const { clock, fail, lines } = start();
  const repeat = ['Error: timeout', undefined];
  expect(fail(5)).toEqual([['stack', undefined], repeat, repeat]);
  expect(lines[0]?.err?.stack).toContain('failure-log.test.ts');
  expect(lines[2]).toMatchObject({ level: 'warn', msg: 'failed', code: 'unavailable', requestId: 2 });
  clock.ms = 59_999;
  expect(fail(1)).toEqual([['Error: timeout', 2]]);
  clock.ms = 60_000;
  expect(fail(2)).toEqual([['stack', undefined], repeat]);
});

test('another message or code is another cause, which is never hidden by the first one', () => {
  const { fail } = start();
  const once = [['stack', undefined]];
  expect(fail(9)).toHaveLength(3);
  expect(fail(1, [new Error('refused')])).toEqual(once);
  expect(fail(1, [new TypeError('timeout')])).toEqual(once);
  expect(fail(1, [new Error('timeout')], 'overloaded')).toEqual(once);
  expect(fail(1, [undefined], 'not_in_force')).toEqual([[undefined, undefined]]);
});

test('messages that contain names result in ten stacks a minute', () => {
  const { fail, clock } = start();
  const stacks = () =>
    Array.from({ length: 30 }, (_, n) => fail(1, [new Error(`pod-${n}`)])).filter(([line]) => line?.[0] === 'stack');
  expect(stacks()).toHaveLength(10);
  clock.ms += 60_000;
  expect(stacks()).toHaveLength(10);
});
