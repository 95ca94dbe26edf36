import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRegistry } from '../telemetry/metrics.ts';
import { registerIndexes } from './work-metrics.ts';

test('a scrape reads all indexes at the same time, because each of them may wait for Redis', async () => {
  const registry = createRegistry();
  const answered = Promise.withResolvers<undefined>();
  const started: string[] = [];
  const read = (index: string) => () => {
    started.push(index);
    return answered.promise;
  };
  registerIndexes(registry, { queues: read('queues'), parts: read('parts'), replays: read('replays') });
  const scraped = registry.metrics();
  await setImmediate();
  expect(new Set(started)).toEqual(new Set(['queues', 'parts', 'replays']));
  answered.resolve(undefined);
  expect(await scraped).toContain('sluice_work_due{index="replays"} Nan');
});
