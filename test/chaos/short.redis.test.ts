import { expect, test } from 'vitest';
import { createRandom } from '../support/random.ts';
import { formatReport, runFault } from './run.ts';

test('does not lose, reorder, or charge any event twice if a dispatcher is killed, Redis is slow, or scripts are lost', async () => {
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
