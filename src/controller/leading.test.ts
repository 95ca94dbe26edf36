import { expect, test } from 'vitest';
import { createLogger } from '../telemetry/log.ts';
import { createLeading, type LeadingDeps } from './leading.ts';

/** Leading of which only the beginning is looked at: it may not come further. */
function begin(read: () => void) {
  const term = new AbortController();
  const claimed: number[] = [];
  const leading = createLeading({
    client: {
      get: async () => {
        read();
        return { metadata: { uid: 'cluster' } };
      },
    },
    control: {
      lead: async (_uid: string, transitions: number) => {
        claimed.push(transitions);
        throw new Error('claimed');
      },
    },
    nowMs: () => 0,
    log: createLogger({ level: 'silent' }),
  } as unknown as LeadingDeps);
  return { term, claimed, leading };
}

test('a term that has ended while it began claims no epoch: it would fence its successor', async () => {
  const { term, claimed, leading } = begin(() => term.abort());
  await expect(leading.begin({ transitions: 7, signal: term.signal })).rejects.toThrow('aborted');
  expect(claimed).toEqual([]);
  expect(() => leading.fence()).toThrow('not leading');
});

test('one that goes on claims it', async () => {
  const { term, claimed, leading } = begin(() => {});
  await expect(leading.begin({ transitions: 7, signal: term.signal })).rejects.toThrow('claimed');
  expect(claimed).toEqual([7]);
});
