import { expect, test } from 'vitest';
import { createLimitedLog } from './limited-log.ts';
import { createLogger } from './log.ts';

test('permits some lines in each period, and counts the lines in between, which have the level debug', () => {
  let nowMs = 0;
  const lines: object[] = [];
  const log = createLogger({ level: 'debug' }, { write: line => void lines.push(JSON.parse(line)) });
  const limited = createLimitedLog({ lines: 2, periodMs: 1_000, nowMs: () => nowMs });
  const write = (count: number) => {
    lines.length = 0;
    for (let i = 0; i < count; i++) limited(log, 'warn', { key: 'a' }, 'failed');
    return lines.map(line => Object.fromEntries(Object.entries(line).filter(([name]) => name !== 'time')));
  };
  const line = { level: 'warn', key: 'a', msg: 'failed' };
  const beyond = { ...line, level: 'debug' };
  expect(write(4)).toEqual([line, line, beyond, beyond]);
  nowMs += 999;
  expect(write(1)).toEqual([beyond]);
  nowMs += 1;
  expect(write(3)).toEqual([{ ...line, suppressed: 3 }, line, beyond]);
  nowMs += 60_000;
  expect(write(1)).toEqual([{ ...line, suppressed: 1 }]);
});
