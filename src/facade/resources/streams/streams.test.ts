import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Cached } from '../../objects/cached.ts';
import { listedBytes, listedEntry } from './streams.ts';

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
