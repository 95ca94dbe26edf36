import { expect, test } from 'vitest';
import { createTestPart, event, START_MS } from '../../../test/support/part/part.ts';
import { createControlRecord } from '../../record/control-store.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createListedParts } from '../members/listed-parts.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { createNoteStored, type Noted, readStored } from './stored-bytes.ts';
import { notePart } from './testing/note-part.ts';

const KIB = 1024;
const FENCE = 1;

onEachRedis(redis => {
  /** A listed part that `acc_a` pays for. Its recorded bytes use a separate clock. */
  async function start() {
    const t = createTestPart(redis());
    await t.setUp({}, []);
    await t.change(
      { kind: 'meta', field: 'payer', value: 'acc_a' },
      { kind: 'meta', field: 'retentionMs', value: '1000' },
    );
    const listed = createListedParts(redis(), createControlRecord(redis()).patch);
    await redis().call('hset', CLUSTER_KEYS.parts, `${t.part.tenant}:orders:0`, t.part.gen);
    const clock = { ms: 0 };
    const calls = { scripts: 0 };
    const client = {
      ...redis(),
      runNamed: (...args: Parameters<typeof t.client.runNamed>) => {
        calls.scripts++;
        return redis().runNamed(...args);
      },
    };
    const noteStored = createNoteStored(client, () => clock.ms);
    const note = (part = t.part, last?: Noted) => notePart(redis(), noteStored, part, last);
    const seen = async () => (await readStored(redis())).filter(({ tenant }) => tenant === t.part.tenant);
    const send = (bytes: number) => t.ingest(event('k', { body: Buffer.alloc(bytes) }));
    return { t, listed, clock, calls, note, seen, send };
  }

  test('records the stored bytes with their account, rounded up, and removes expired ones', async () => {
    const { t, note, seen, send } = await start();
    await note();
    expect(await seen()).toEqual([]);
    await send(100 * KIB);
    await note();
    const { tenant, queue } = t.part;
    expect(await seen()).toEqual([{ tenant, queue, payer: 'acc_a', bytes: 128 * KIB, key: t.keys.meta }]);
    t.clock.ms = START_MS + 60_000;
    await sweepAll(t);
    await note();
    expect(await seen()).toEqual([]);
  });

  test('only writes after a change of 64 KiB or of the account, and again after 5 minutes', async () => {
    const { t, clock, calls, note, seen, send } = await start();
    await send(KIB);
    let last = await note();
    await send(KIB);
    last = await note(t.part, last);
    expect(calls.scripts).toBe(1);
    await send(64 * KIB);
    last = await note(t.part, last);
    expect(calls.scripts).toBe(2);
    await t.change({ kind: 'meta', field: 'payer', value: 'acc_b' });
    last = await note(t.part, last);
    expect(await seen()).toMatchObject([{ payer: 'acc_b', bytes: 128 * KIB }]);
    await redis().call('hdel', CLUSTER_KEYS.stored, `${t.part.tenant}:orders:0`);
    clock.ms = 299_999;
    last = await note(t.part, last);
    expect(await seen()).toEqual([]);
    clock.ms = 300_000;
    await note(t.part, last);
    expect(await seen()).toHaveLength(1);
  });

  test('removes the entry of a removed part, even if it is recorded later', async () => {
    const { t, listed, note, seen, send } = await start();
    await send(KIB);
    await note();
    expect(await seen()).toHaveLength(1);
    await listed.remove(FENCE, [t.part]);
    expect(await seen()).toEqual([]);
    await note();
    expect(await seen()).toEqual([]);
    await redis().call('hset', CLUSTER_KEYS.parts, `${t.part.tenant}:orders:0`, 'gen2');
    expect(await note()).toBeDefined();
    expect(await seen()).toEqual([]);
    expect(await note({ ...t.part, gen: 'gen2' })).toBe(undefined);
  });
});
