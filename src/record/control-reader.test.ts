import { expect, test } from 'vitest';
import { turnsOf } from '../../test/support/event-loop-turns.ts';
import { integrationKeys, tenantKeys } from '../redis/keys.ts';
import type { Fields } from './control-plan.ts';
import { readRoutes } from './control-reader.ts';

test('the event loop continues while the routes of a large workspace are read', async () => {
  const names = Array.from({ length: 10_000 }, (_, n) => [`int_${n}`, `sub_${n}`] as const);
  const index: Fields = {};
  const hashes = new Map<string, Fields>([[tenantKeys('ten_a').index, index]]);
  for (const [integration, sub] of names) {
    index[`s:${integration}:${sub}`] = 'inc';
    hashes.set(integrationKeys(integration).meta, { state: 'active', fence: '7', ready: '1' });
    hashes.set(integrationKeys(integration).sub(sub), { inc: 'inc', queue: 'orders', gen: 'gen', route: 'open' });
  }
  const read = async (keys: readonly string[]) => new Map(keys.map(key => [key, hashes.get(key) ?? {}]));
  const reading = readRoutes(read, 'ten_a');
  const turns = await turnsOf(reading);
  const { stored, fences } = await reading;
  expect(Object.keys(stored.routes.integrations)).toHaveLength(names.length);
  expect(fences.get(integrationKeys('int_9999').meta)).toBe(7);
  // There is at least one turn for each of three calculations, even if they are not sliced.
  expect(turns).toBeGreaterThan(5);
});
