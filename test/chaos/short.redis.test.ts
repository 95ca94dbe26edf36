import { expect, test } from 'vitest';
import { createRandom } from '../system/support/publisher.ts';
import { formatReport, runFault } from './run.ts';

test('a dispatcher that is killed, a slow Redis, and lost scripts: nothing is lost, reordered, or charged twice', async () => {
  const report = await runFault({
    faults: ['kill-dispatcher', 'script-flush', 'delay-500'],
    faultMs: 5_000,
    quietMs: 1_000,
    random: createRandom(5),
    onDisk: false,
  });
  console.log(formatReport(report));
  expect(report.problems).toEqual([]);
});
