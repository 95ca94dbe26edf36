import { describe, expect, test } from 'vitest';
import { createPartInbox, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { partRefOf } from '../inbox/ref-names.ts';
import { createSweep } from './sweep.ts';
import { sweepAll } from './testing/sweep-all.ts';

const RETENTION_MS = 3_600_000;

onEachRedis(redis => {
  async function start(sub: NonNullable<Parameters<typeof createPartInbox>[1]>['sub'] = {}) {
    const inbox = await createPartInbox(redis(), { sub });
    await inbox.part.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    await inbox.setAccount('Metered', 0);
    return inbox;
  }
  const replay = ({ replays, payer, inbox }: PartInbox, ref: string, id: string) =>
    replays.start(payer, id, inbox, { ref });
  const replayed = ({ t }: PartInbox) => redis().readHash(t.keys.replays);

  describe('retention', () => {
    test('ends the replays of an event together with the event, and removes their list', async () => {
      const inbox = await start();
      const [old = ''] = await inbox.publish(['a']);
      await inbox.drain();
      inbox.part.clock.ms += RETENTION_MS / 2;
      const [young = ''] = await inbox.publish(['a']);
      await inbox.drain();
      await replay(inbox, old, 'done');
      await inbox.drain();
      await inbox.say({ sub: { send: 'held' } });
      await replay(inbox, old, 'open');
      await replay(inbox, young, 'later');
      inbox.part.clock.ms += RETENTION_MS / 2 + 1;
      expect(await sweepAll(inbox.part)).toMatchObject({ events: 1, expired: 1 });
      expect(await inbox.count()).toEqual({ routed: 2, replayed: 3, delivered: 3, expired: 1, open: 1 });
      expect(await replayed(inbox)).toEqual({ [inbox.slot + partRefOf(young)]: 'later' });
      expect(await inbox.part.records(partRefOf(old) as string, 'done')).toEqual([]);
      const records = await inbox.part.records(partRefOf(old) as string, 'open');
      expect(records.map(({ outcome }) => outcome)).toEqual(['expired']);
      await inbox.say({});
      expect(await inbox.drain()).toEqual([['a\x01later', young]]);
    });

    test('ends a claimed event', async () => {
      const inbox = await start();
      const [ref = ''] = await inbox.publish(['a']);
      await inbox.drain();
      await replay(inbox, ref, 'r');
      const [claim] = await inbox.claim();
      inbox.part.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(inbox.part)).toMatchObject({ expired: 1 });
      expect(await inbox.end(claim as NonNullable<typeof claim>)).toBe('ended');
      expect(await inbox.count()).toMatchObject({ delivered: 1, expired: 1, open: 0 });
    });

    test.each([false, true])('ends more replays than one call may (unordered: %s)', async unordered => {
      const inbox = await start({ unordered });
      const refs = await inbox.publish(['a', 'b']);
      await inbox.drain();
      await inbox.say({ sub: { unordered, send: 'held' } });
      const field = (ref: string) => inbox.slot + partRefOf(ref);
      const ids = Array.from({ length: 20 }, (_, i) => `rpl_${i}`);
      for (const ref of refs) for (const id of ids) await replay(inbox, ref, `${id}_${ref}`);
      // As if there had been many replays with ids of the maximum length.
      const many = Array.from({ length: 300 }, (_, i) => `${i}_`.padEnd(64, 'x'));
      for (const ref of refs) {
        const had = (await replayed(inbox))[field(ref)] as string;
        await redis().call('hset', inbox.t.keys.replays, field(ref), [...many, ...had.split(',')].join(','));
      }
      inbox.part.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(inbox.part)).toMatchObject({ events: 2, expired: 40 });
      expect(await inbox.count()).toMatchObject({ replayed: 40, expired: 40, open: 0 });
      expect(await replayed(inbox)).toEqual({});
    });

    test('does not replay events that are about to expire', async () => {
      const inbox = await start({ send: 'held' });
      const sixty = Array.from({ length: 60 }, () => 'a');
      const refs = [...(await inbox.publish(sixty)), ...(await inbox.publish(sixty))];
      inbox.part.clock.ms += RETENTION_MS + 1;
      const sweep = createSweep(inbox.part.client);
      while (((await inbox.count()).expired ?? 0) === 0) await sweep(inbox.part.part, {});
      expect(await inbox.count()).toMatchObject({ expired: 100, open: 20 });
      await replay(inbox, refs[0] as string, 'late');
      expect(await sweepAll(inbox.part)).toMatchObject({ events: 120, expired: 20 });
      expect(await inbox.count()).toEqual({ routed: 120, expired: 120, open: 0 });
      expect(await replayed(inbox)).toEqual({});
    });

    test('continues after 100 open replays have ended', async () => {
      const inbox = await start({ send: 'held' });
      const refs = await inbox.publish(Array.from({ length: 60 }, () => 'a'));
      expect(await inbox.operations.skipUpTo(inbox.inbox, refs.at(-1) as string)).toMatchObject({ skipped: 60 });
      for (const ref of refs) for (const id of ['one', 'two', 'six']) await replay(inbox, ref, `${id}_${ref}`);
      inbox.part.clock.ms += RETENTION_MS + 1;
      expect(await sweepAll(inbox.part)).toMatchObject({ events: 60, expired: 180 });
      expect(await inbox.count()).toMatchObject({ replayed: 180, expired: 180, open: 0 });
      expect(await replayed(inbox)).toEqual({});
    });
  });

  test('a deleted subscription removes its replays; others are kept', async () => {
    const inbox = await start();
    const refs = await inbox.publish(Array.from({ length: 40 }, () => 'a'));
    await inbox.drain();
    const [first = '', last = ''] = [refs[0], refs[39]];
    for (const ref of [first, last]) await replay(inbox, ref, `r_${ref}`);
    expect(await inbox.operations.skip(inbox.inbox, { ref: last, replayId: `r_${last}` })).toBe('OK');
    const other = inbox.part.slot('other');
    await inbox.part.setRow('other', {});
    await redis().call('hset', inbox.t.keys.replays, other + partRefOf(first), 'r');
    await inbox.part.change({ kind: 'drop', slot: inbox.slot, how: 'delete' });
    await sweepAll(inbox.part);
    expect(await replayed(inbox)).toEqual({ [other + partRefOf(first)]: 'r' });
  });
});
