import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { integrationKeys, tenantKeys } from '../redis/keys.ts';
import type { Fields } from './control-plan.ts';
import { readRoutes } from './control-reader.ts';

test('the event loop continues while the routes of a large workspace are read', async () => {
  const names = Array.from({ length: 1_000 }, (_, n) => [`int_${n}`, `sub_${n}`] as const);
  const index: Fields = {};
  const hashes = new Map<string, Fields>([[tenantKeys('ten_a').index, index]]);
  for (const [integration, sub] of names) {
    index[`s:${integration}:${sub}`] = 'inc';
    hashes.set(integrationKeys(integration).meta, { state: 'active', fence: '7', ready: '1' });
    hashes.set(integrationKeys(integration).sub(sub), { inc: 'inc', queue: 'orders', gen: 'gen', route: 'open' });
  }
  let turns = 0;
  let isRead = false;
  async function countTurns(): Promise<void> {
    for (; !isRead; turns++) await nextTurn();
  }
  const counting = countTurns();
  const read = async (keys: readonly string[]) => new Map(keys.map(key => [key, hashes.get(key) ?? {}]));
  const { stored, fences } = await readRoutes(read, 'ten_a');
  isRead = true;
  await counting;
  expect(Object.keys(stored.routes.integrations)).toHaveLength(names.length);
  expect(fences.get(integrationKeys('int_999').meta)).toBe(7);
  expect(turns).toBeGreaterThan(2);
});
