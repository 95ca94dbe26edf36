import { describe, expect, test } from 'vitest';
import { event } from '../../../test/support/part/part.ts';
import { createPartInbox, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { recordsBucketOf } from '../keys.ts';
import { createSweep } from '../sweep/sweep.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';

const HOUR_MS = 3_600_000;
const RETENTION_MS = 2 * HOUR_MS;
/** The time after which all data is removed. Records are kept for two retentions and 6 h after the end of their 6 h. */
const FORGOTTEN_MS = 2 * RETENTION_MS + 12 * HOUR_MS;
const ID_COST = 115;
/** The bytes of an open delivery. They are given back when it ends. */
const OPEN_COST = 450;
/** The bytes of an event that was removed and still has failed deliveries. */
const KEPT_COST = 90;
/** The bytes of a failed delivery whose record has this size. */
const failedCost = (bytes: number) => 145 + Math.ceil((9 / 8) * bytes);
const DEAD = { outcome: 'dead', record: 'dead 1 1 500 9' } as const;

onEachRedis(redis => {
  async function start() {
    const inbox = await createPartInbox(redis());
    const { part, t } = inbox;
    const retain = (ms: number) => part.change({ kind: 'meta', field: 'retentionMs', value: String(ms) });
    await retain(RETENTION_MS);
    const bytes = async () => Number((await part.hash('meta')).bytes ?? 0);
    /** Advances the clock, and removes everything that is due. */
    async function pass(ms: number) {
      t.clock.ms += ms;
      await sweepAll(part);
    }
    /** Advances the clock until all data is removed. Each step is repeated after a failover that has lost it. */
    async function passAll() {
      const sweep = createSweep(part.client);
      const state = {};
      for (let hours = 0; hours < 48; hours += 3) {
        t.clock.ms += 3 * HOUR_MS;
        for (let more = true; more; ) {
          const restore = await copyPart(inbox);
          await sweep(part.part, { ...state });
          const once = await bytes();
          await restore();
          const answer = await sweep(part.part, state);
          expect(await bytes()).toBe(once);
          more = answer.answer === 'OK' && answer.more;
        }
      }
    }
    return { ...inbox, retain, bytes, pass, passAll };
  }

  /** Copies the part. Returns a function that restores the copy. */
  async function copyPart({ part: { keys }, t }: PartInbox) {
    const hour = Math.floor(t.clock.ms / HOUR_MS);
    const buckets = Array.from({ length: 12 }, (_, i) => keys.records(Math.floor(hour / 6) - i));
    const hours = Array.from({ length: 50 }, (_, i) => keys.ids(hour - i));
    const names = [...Object.values(keys).filter(key => typeof key === 'string'), ...buckets, ...hours] as string[];
    const copied = new Set<string>();
    const copy = (from: string, to: string) => redis().call('copy', from, to, 'REPLACE');
    await Promise.all(
      names.map(async key => {
        if ((await copy(key, `${key}:copy`)) === 1) copied.add(key);
      }),
    );
    return async () => {
      const isCopied = (key: string) => copied.has(key);
      await Promise.all(names.map(key => (isCopied(key) ? copy(`${key}:copy`, key) : redis().call('unlink', key))));
    };
  }

  /** Returns the bytes that all failed deliveries of events should use. Each of them has a separate chunk. */
  async function failedBytes({ part, t: { clock } }: PartInbox): Promise<number> {
    let bytes = 0;
    for (let bucket = recordsBucketOf(clock.ms) - 8; bucket <= recordsBucketOf(clock.ms); bucket++) {
      const [flat] = (await redis().runBuffers('hashes', [part.keys.records(bucket)], [])) as [Buffer[]];
      const records = flat.filter((_, i) => i % 2 === 1 && flat[i - 1]?.length === 15).map(chunk => chunk.subarray(1));
      for (const record of records) if (record.length > 0) bytes += failedCost(record.length);
    }
    return bytes;
  }

  describe('a failed delivery is counted until its record is removed', () => {
    test.each(['dead', 'skipped', 'expired'])('%s', async how => {
      const inbox = await start();
      const { publish, drain, operations, bytes, pass, part } = inbox;
      const [ref] = (await publish(['a'])) as [string];
      const open = await bytes();
      if (how === 'dead') await drain(DEAD);
      if (how === 'skipped') expect(await operations.skip(inbox.inbox, { ref })).toBe('OK');
      if (how !== 'expired') expect(await bytes()).toBe(open - OPEN_COST + (await failedBytes(inbox)));
      await pass(RETENTION_MS + 1);
      expect(await part.log()).toEqual([]);
      const kept = await failedBytes(inbox);
      expect(kept).toBeGreaterThan(160);
      expect(await bytes()).toBe(kept + KEPT_COST);
      await pass(FORGOTTEN_MS);
      expect([await bytes(), await part.members('final')]).toEqual([0, []]);
    });

    test('and is listed until then', async () => {
      const { publish, drain, bytes, pass, part } = await start();
      await publish(['a']);
      await drain(DEAD);
      for (let hours = 0; hours < 20; hours++) {
        await pass(HOUR_MS);
        expect([hours, (await part.members('final')).length]).toEqual([hours, (await bytes()) > 0 ? 1 : 0]);
      }
      expect(await bytes()).toBe(0);
    });

    test('including the text of each failed attempt', async () => {
      const inbox = await start();
      const { publish, claim, end, forgive, bytes, pass, t } = inbox;
      await publish(['a']);
      const before = await bytes();
      for (let attempt = 1; attempt <= 8; attempt++) {
        const [claimed] = await claim();
        const outcome =
          attempt === 8 ? DEAD : ({ outcome: 'failed', dueMs: t.clock.ms + 1, attempt: '1,500,9' } as const);
        await end(claimed as NonNullable<typeof claimed>, outcome);
        await forgive();
        t.clock.ms += 10_000;
      }
      const failed = await failedBytes(inbox);
      expect(failed).toBeGreaterThan(165 + 7 * 10);
      expect(await bytes()).toBe(before - OPEN_COST + failed);
      await pass(RETENTION_MS + 1);
      expect(await bytes()).toBe(failed + KEPT_COST);
    });

    test('unlike a delivered event', async () => {
      const { publish, drain, bytes, pass } = await start();
      await publish(['a', 'b']);
      const open = await bytes();
      await drain();
      expect(await bytes()).toBe(open - 2 * OPEN_COST);
      await pass(RETENTION_MS + 1);
      expect(await bytes()).toBe(0);
    });

    test('except for a recovered dead letter, until it is dead again', async () => {
      const inbox = await start();
      const { publish, drain, recovery, bytes, passAll } = inbox;
      await publish(['a', 'b']);
      const open = await bytes();
      await drain(DEAD);
      expect(await recovery.recover(inbox.inbox, { sinceMs: 0 })).toMatchObject({ recovered: 2 });
      expect(await bytes()).toBe(open);
      await drain(DEAD);
      expect(await bytes()).toBe(open - 2 * OPEN_COST + (await failedBytes(inbox)));
      expect(await recovery.recover(inbox.inbox, { sinceMs: 0 })).toMatchObject({ recovered: 0 });
      await passAll();
      expect(await bytes()).toBe(0);
    });

    test('once, if its dispatcher reports it again', async () => {
      const { publish, claim, end, bytes } = await start();
      await publish(['a']);
      const [claimed] = await claim();
      await end(claimed as NonNullable<typeof claimed>, DEAD);
      const once = await bytes();
      expect(await end(claimed as NonNullable<typeof claimed>, DEAD)).toBe('stale');
      expect(await bytes()).toBe(once);
    });

    test.each([
      ['shorter', 48, 2],
      ['longer', 2, 48],
    ])('even with a %s retention in the meantime', async (_, before, after) => {
      const { publish, drain, bytes, pass, retain } = await start();
      await retain(before * HOUR_MS);
      for (let hour = 0; hour < 8; hour++) {
        await publish(['a', 'b']);
        await drain(DEAD);
        await publish(['c']);
        await pass(HOUR_MS);
      }
      await retain(after * HOUR_MS);
      for (let hour = 0; hour < 40; hour++) {
        const had = await bytes();
        await pass(4 * HOUR_MS);
        if (hour > 0) expect(await bytes()).toBeLessThanOrEqual(had);
      }
      expect(await bytes()).toBe(0);
    });
  });

  describe('the id of a producer is counted until it is removed', () => {
    test('if its event expires earlier', async () => {
      const { part, t, bytes, pass } = await start();
      const send = (...ids: string[]) => part.ingest(...ids.map(senderId => event('a', { senderId })));
      await send('x', 'y');
      await send('x');
      await pass(RETENTION_MS + 1);
      expect(await part.log()).toEqual([]);
      expect((await send('x')).answer === 'OK' && (await part.log())).toEqual([]);
      const records = await bytes();
      await pass(FORGOTTEN_MS);
      expect(records - (await bytes())).toBeGreaterThan(2 * failedCost(20));
      expect(await bytes()).toBe(2 * ID_COST);
      t.clock.ms = 500_026 * HOUR_MS - 1;
      await pass(0);
      expect(await bytes()).toBe(2 * ID_COST);
      await pass(1);
      expect(await bytes()).toBe(0);
    });

    test('and not longer if its event is kept', async () => {
      const { part, bytes, pass, retain, drain } = await start();
      await retain(100 * HOUR_MS);
      await part.ingest(event('a'));
      const [one] = await part.log();
      await part.ingest(event('a', { senderId: 'x' }));
      expect(await bytes()).toBe(2 * (one?.cost ?? 0) + ID_COST + 2 * OPEN_COST);
      await drain();
      await pass(26 * HOUR_MS);
      expect(await bytes()).toBe(2 * (one?.cost ?? 0));
      await pass(80 * HOUR_MS);
      expect(await bytes()).toBe(0);
    });

    test('even after a failover', async () => {
      const { part, t, bytes, passAll, drain } = await start();
      for (let hour = 0; hour < 5; hour++) {
        await part.ingest(...Array.from({ length: 9 }, (_, i) => event('a', { senderId: `${hour} ${i % 7}` })));
        await drain(hour % 2 === 0 ? DEAD : {});
        t.clock.ms += HOUR_MS;
      }
      await passAll();
      expect(await bytes()).toBe(0);
    });

    test('and an event is only stored if there is space for its id', async () => {
      const { part, bytes } = await start();
      await part.ingest(event(''));
      const one = await bytes();
      const room = (value: number) => part.change({ kind: 'meta', field: 'maxBytes', value: String(value) });
      const send = () => part.ingest(event('', { senderId: 'x' }));
      await room(2 * one + ID_COST - 1);
      expect(await send()).toMatchObject({ events: [{ answer: 'FULL' }] });
      await room(2 * one + ID_COST);
      expect(await send()).toMatchObject({ events: [{ answer: 'OK' }] });
      expect(await bytes()).toBe(2 * one + ID_COST);
    });
  });
});
