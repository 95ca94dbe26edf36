import { expect, test } from 'vitest';
import { createRegistry, Histogram } from './metrics.ts';
import { createPlainHistogram } from './plain-histogram.ts';

test('returns exactly the same text as the histogram of prom-client for the same observations', async () => {
  const [ours, theirs] = [createRegistry(), createRegistry()];
  const about = { name: 'sluice_test_seconds', help: 'A test.', buckets: [0.005, 0.1, 1] };
  const plain = createPlainHistogram(ours, about);
  const own = new Histogram({ ...about, registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const value of [0, 0.005, 0.0051, 0.1, 0.5, 1, 1.5, 30]) {
    plain.observe(value);
    own.observe(value);
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});
