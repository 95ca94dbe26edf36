import { expect, test } from 'vitest';
import { refOfStreamId } from '../../core/ids/refs.ts';
import { createEventCache } from './event-cache.ts';

const SOURCE = { tenant: 'ten_t', queue: 'orders', gen: 'g' };
const ref = (seq: number) => refOfStreamId(`1800000000000-${seq}`);

/** A store whose bodies have 1,000 bytes; `reads` lists the stream ids of each call. */
function start(maxBytes: number, missing: readonly string[] = []) {
  const reads: string[][] = [];
  const fail: { next?: Error } = {};
  const read = createEventCache(
    {
      readEvents: async (_tenant, _queue, _gen, ids) => {
        reads.push([...ids]);
        if (fail.next !== undefined) throw fail.next;
        return ids.map(id =>
          missing.includes(id)
            ? undefined
            : { meta: `{"i":"${id}","s":"/s"}`, groupKey: 'k', body: Buffer.alloc(1_000) },
        );
      },
    },
    maxBytes,
  );
  return { read, reads, fail };
}

test('an event that several want at about the same time is read once', async () => {
  const { read, reads } = start(1_000_000);
  const [first, second] = await Promise.all([read(SOURCE, [ref(1), ref(2)]), read(SOURCE, [ref(2), ref(3)])]);
  expect(reads).toEqual([['1800000000000-1', '1800000000000-2'], ['1800000000000-3']]);
  expect(first[1]).toBe(second[0]);
  expect(first[0]).toMatchObject({ meta: { id: '1800000000000-1', groupKey: 'k', time: 1_800_000_000_000 } });
  await read(SOURCE, [ref(1)]);
  expect(reads).toHaveLength(2);
});

test('another queue, or another generation of it, is something else', async () => {
  const { read, reads } = start(1_000_000);
  await read(SOURCE, [ref(1)]);
  await read({ ...SOURCE, gen: 'h' }, [ref(1)]);
  await read({ ...SOURCE, queue: 'refunds' }, [ref(1)]);
  expect(reads).toHaveLength(3);
});

test('keeps no more than said, the newest of it', async () => {
  const { read, reads } = start(5_000);
  for (let i = 0; i < 100; i++) await read(SOURCE, [ref(i)]);
  reads.length = 0;
  await read(SOURCE, [ref(99), ref(98), ref(97)]);
  expect(reads).toEqual([]);
  await read(SOURCE, [ref(90)]);
  expect(reads).toHaveLength(1);
});

test('what retention removed is undefined, and asked for again', async () => {
  const { read, reads } = start(1_000_000, ['1800000000000-2']);
  expect(await read(SOURCE, [ref(1), ref(2)])).toEqual([expect.anything(), undefined]);
  expect(await read(SOURCE, [ref(2)])).toEqual([undefined]);
  expect(reads).toHaveLength(2);
});

test('a failure is told to all who wait, and not kept', async () => {
  const { read, fail } = start(1_000_000);
  fail.next = new Error('away');
  const both = await Promise.allSettled([read(SOURCE, [ref(1)]), read(SOURCE, [ref(1)])]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  delete fail.next;
  expect(await read(SOURCE, [ref(1)])).toHaveLength(1);
});

test('its count of bytes survives everything: it holds as much as before', async () => {
  const { read, reads, fail } = start(10_000);
  for (let i = 0; i < 50; i++) {
    if (i % 7 === 0) fail.next = new Error('away');
    await Promise.allSettled([read(SOURCE, [ref(i), ref(i + 1)]), read(SOURCE, [ref(i)])]);
    delete fail.next;
  }
  for (let i = 200; i < 210; i++) await read(SOURCE, [ref(i)]);
  reads.length = 0;
  await read(
    SOURCE,
    Array.from({ length: 7 }, (_, i) => ref(203 + i)),
  );
  expect(reads).toEqual([]);
});

test('one that is wanted twice in a call is read once', async () => {
  const { read, reads } = start(1_000_000);
  const [first, again] = await read(SOURCE, [ref(1), ref(1)]);
  expect(reads).toEqual([['1800000000000-1']]);
  expect(again).toBe(first);
  expect(first).toBeDefined();
});

test('what was dropped while it was read does not count', async () => {
  const { read, reads } = start(2_500);
  const slow = Promise.all(Array.from({ length: 9 }, (_, i) => read(SOURCE, [ref(i)])));
  await slow;
  reads.length = 0;
  await read(SOURCE, [ref(20), ref(21)]);
  await read(SOURCE, [ref(20), ref(21)]);
  expect(reads).toHaveLength(1);
});
