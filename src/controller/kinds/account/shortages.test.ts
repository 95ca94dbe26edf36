import { expect, test } from 'vitest';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { createShortages } from './shortages.ts';

test('only existing accounts with a shortage are counted', async () => {
  const registry = createRegistry();
  const accounts = new Set(['one', 'two', 'rich']);
  const exists = (account: string) => accounts.has(account);
  const shortages = createShortages({ registry, exists, leads: () => true, onNews: () => {} });
  const counted = async () => /^sluice_controller_accounts_short (\d+)$/m.exec(await registry.metrics())?.[1];
  for (const account of accounts) shortages.note(account, account !== 'rich');
  expect(await counted()).toBe('2');
  accounts.delete('two');
  expect(await counted()).toBe('1');
  expect([shortages.isShort('one'), shortages.isShort('two'), shortages.isShort('rich')]).toEqual([
    true,
    undefined,
    false,
  ]);
});
