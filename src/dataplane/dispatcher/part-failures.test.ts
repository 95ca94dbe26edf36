import { expect, test } from 'vitest';
import { createLogger } from '../../telemetry/log.ts';
import { createPartFailures } from './part-failures.ts';

test('logs one failure per minute, and the number of the others', () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) });
  const part = { tenant: 'ten_a', queue: 'orders' };
  let nowMs = 0;
  let count = 0;
  const note = createPartFailures(log, { count: () => void count++, monotonicMs: () => nowMs });
  for (; nowMs < 120_000; nowMs += 100) note(new Error('no answer'), 'exchange failed', part);
  const line = { level: 'warn', ...part, failure: 'exchange failed', msg: 'work on a stream failed, retrying' };
  expect(count).toBe(1_200);
  expect(lines).toMatchObject([
    { ...line, err: { message: 'no answer' } },
    { ...line, suppressed: 599 },
  ]);
  expect(lines[0]).not.toHaveProperty('suppressed');
});
