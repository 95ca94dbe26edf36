import { expect, test } from 'vitest';
import { tenantId } from '../../core/ids/ids.ts';
import type { Caches } from '../caches/caches.ts';
import { createStoredBytes } from './stored-bytes.ts';

const STREAMS = 150;

/** Two workspaces of one account and one of another. Each stream has 2 bytes, unless a test changes this. */
function start() {
  const namespaces: Record<string, readonly string[]> = { acme: ['shop', 'north'], globex: ['south'] };
  const reads: string[] = [];
  const state = { bytes: 2 };
  const caches = {
    by: (_kind: string, _index: string, account: string) =>
      (namespaces[account] ?? []).map(name => ({ metadata: { name } })),
    list: (_kind: string, namespace: string) =>
      Array.from({ length: namespace === 'shop' ? STREAMS : 1 }, (_, n) => ({
        metadata: { name: `s-${n}`, namespace },
      })),
  } as unknown as Pick<Caches, 'by' | 'list'>;
  const readStoredBytes = createStoredBytes({
    caches,
    routing: {
      readStoredBytes: async (tenant, queue) => {
        reads.push(`${tenant}/${queue}`);
        return state.bytes;
      },
    },
  });
  return { readStoredBytes, reads, state };
}

test('adds up the streams of all workspaces of the account', async () => {
  const { readStoredBytes, reads } = start();
  expect(await readStoredBytes('acme')).toBe(2 * (STREAMS + 1));
  expect(new Set(reads).size).toBe(STREAMS + 1);
  expect(reads).not.toContain(`${tenantId('south')}/s-0`);
  expect(await readStoredBytes('unknown')).toBe(0);
});

test('many concurrent calls read each stream at most twice, and see what was stored before', async () => {
  const { readStoredBytes, reads, state } = start();
  const first = readStoredBytes('acme');
  // The reading in progress may have missed this change, so the calls below must not use it.
  state.bytes = 3;
  const calls = Array.from({ length: 40 }, () => readStoredBytes('acme'));
  expect(await readStoredBytes('globex')).toBe(3);
  await first;
  expect(await Promise.all(calls)).toEqual(calls.map(() => 3 * (STREAMS + 1)));
  expect(reads.filter(read => read.startsWith(tenantId('shop')))).toHaveLength(2 * STREAMS);
});
