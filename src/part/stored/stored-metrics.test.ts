import { expect, test } from 'vitest';
import { createRegistry } from '../../telemetry/metrics.ts';
import type { StoredEvents } from './stored-bytes.ts';
import { registerStoredMetrics } from './stored-metrics.ts';

const streamOf = (tenant: string, bytes: number, queue = 'orders'): StoredEvents => ({
  tenant: `ten_${tenant}`,
  queue,
  payer: 'acc_a',
  bytes,
  key: '',
});

/** Returns the metrics for the content of `says` at each scrape, 15 s apart. */
function start() {
  const says: { stored: readonly StoredEvents[] | Error } = { stored: [] };
  const clock = { ms: 0 };
  const registry = createRegistry();
  registerStoredMetrics(
    registry,
    async () => {
      if (says.stored instanceof Error) throw says.stored;
      return says.stored;
    },
    () => clock.ms,
  );
  async function scrape(): Promise<string[]> {
    clock.ms += 15_000;
    return (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'));
  }
  return { says, scrape };
}

test('the ten largest workspaces each have a series with the bytes of all of their streams', async () => {
  const { says, scrape } = start();
  says.stored = [
    ...Array.from({ length: 12 }, (_, i) => streamOf(`${i}`, 100 + i)),
    streamOf('split', 60),
    streamOf('split', 60, 'invoices'),
  ];
  const lines = await scrape();
  expect(lines).toHaveLength(11);
  expect(lines[0]).toBe('sluice_workspace_stored_bytes{tenant="ten_split"} 120');
  expect(lines.slice(1, 10)).toEqual(
    Array.from({ length: 9 }, (_, i) => `sluice_workspace_stored_bytes{tenant="ten_${11 - i}"} ${111 - i}`),
  );
  expect(lines[10]).toBe(`sluice_stored_bytes ${12 * 100 + 66 + 120}`);
});

test('removes the series of a workspace that is not one of the ten largest anymore', async () => {
  const { says, scrape } = start();
  for (let round = 0; round < 50; round++) {
    says.stored = Array.from({ length: 10 }, (_, i) => streamOf(`${round}-${i}`, 1 + i));
    const lines = await scrape();
    expect(lines).toHaveLength(11);
    expect(lines.filter(line => line.includes(`ten_${round}-`))).toHaveLength(10);
  }
  says.stored = [];
  expect(await scrape()).toEqual(['sluice_stored_bytes 0']);
});

test('without Redis, no outdated values are reported', async () => {
  const { says, scrape } = start();
  says.stored = [streamOf('a', 5)];
  await scrape();
  says.stored = new Error('unavailable');
  expect(await scrape()).toEqual(['sluice_stored_bytes Nan']);
});
