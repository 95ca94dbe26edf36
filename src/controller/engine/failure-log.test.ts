import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createFailureLog } from './failure-log.ts';

test('logs a few failures completely, and only some of them while many keys fail', async () => {
  const lines: { readonly key: string; readonly suppressed?: number }[] = [];
  const log = createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) });
  const clock = createManualClock();
  const logFailure = createFailureLog(clock);
  const error = new Error('no answer');
  for (const key of ['a', 'b']) logFailure(log, error, key);
  expect(lines).toMatchObject([
    { key: 'a', err: { message: 'no answer' }, msg: 'cannot reconcile; retrying', level: 'warn' },
    { key: 'b' },
  ]);
  expect(lines[0]).not.toHaveProperty('suppressed');
  await clock.advance(10_000);
  lines.length = 0;
  for (let second = 0; second < 60; second++) {
    for (let n = 0; n < 100; n++) logFailure(log, error, `key-${n}`);
    await clock.advance(1_000);
  }
  expect(lines).toHaveLength(6 * 20);
  expect(lines[20]?.suppressed).toBe(980);
});
