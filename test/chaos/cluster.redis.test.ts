import { expect, test } from 'vitest';
import { createRandom } from '../support/random.ts';
import { formatReport, runFault } from './run.ts';

test('does not lose, reorder, or charge any event twice during a failover and a resharding of a Redis Cluster', async () => {
  const report = await runFault({
    faults: ['failover', 'reshard'],
    faultMs: 1_000,
    quietMs: 1_000,
    random: createRandom(5),
    onDisk: false,
  });
  console.log(formatReport(report));
  expect(report.problems).toEqual([]);
  expect(report.hits).toBeGreaterThanOrEqual(2);
});
