import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { turnsOf } from '../../../../test/support/event-loop-turns.ts';
import type { Cached } from '../../caches/cached.ts';
import { listedBytes, listedEntry, pageOfStreams } from './streams.ts';

test('a list entry contains the size and the hash of the payload schema, and not the schema', () => {
  const payloadSchema = '"é'.repeat(40_000);
  const stream = {
    metadata: { name: 'orders', namespace: 'shop' },
    spec: { public: true, payloadSchema },
  } as unknown as Cached<'CatalogStream'>;
  const entry = listedEntry(stream);
  expect(entry).toMatchObject({
    payloadSchemaBytes: Buffer.byteLength(payloadSchema),
    payloadSchemaSha256: createHash('sha256').update(payloadSchema).digest('hex'),
  });
  expect(JSON.stringify(entry).length).toBeLessThan(1_000);
  expect(listedBytes(stream)).toBe(Buffer.byteLength(JSON.stringify(entry)));
});

test('the first list of large schemas lets the event loop run, and later lists do not repeat the work', async () => {
  const payloadSchema = '"'.repeat(131_072);
  const streams = Array.from(
    { length: 250 },
    (_, n) =>
      ({ metadata: { name: `stream-${n}`, namespace: 'shop' }, spec: { payloadSchema } }) as Cached<'CatalogStream'>,
  );
  const first = pageOfStreams(['catalog', 'shop'], streams, { limit: 250 });
  expect(await turnsOf(first)).toBeGreaterThan(2);
  const { data, nextCursor } = await first;
  expect([data.length, nextCursor]).toEqual([250, null]);
  expect(await turnsOf(pageOfStreams(['catalog', 'shop'], streams, { limit: 250 }))).toBeLessThan(2);
});
