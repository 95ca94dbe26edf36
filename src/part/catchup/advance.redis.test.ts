import { describe, expect, test } from 'vitest';
import { createTestPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

const PAUSED = { route: 'paused', send: 'held' } as const;

onEachRedis(redis => {
  async function start(names = ['a', 'b']) {
    const t = createTestPart(redis());
    await t.setUp(Object.fromEntries(names.map(name => [name, {}])), ['k', 'l']);
    const routed = async (name = 'a') => (await t.counts(name))[1];
    const lateOf = async (ref: string) => Number(await redis().call('hstrlen', t.keys.late, ref)) / 5;
    return { t, d: t.dispatcher('d1'), routed, lateOf };
  }

  describe('a subscription that is behind', () => {
    test('receives the events of its pause in order, becomes live at the tail, and is charged once', async () => {
      const { t, d, routed, lateOf } = await start();
      await t.setRow('a', PAUSED);
      const refs = await t.send('k', 'l', 'k', 'other');
      await t.setRow('a', {});
      expect(await t.advanceAll()).toBe(3);
      expect(await t.hash('positions')).toEqual({});
      expect([await routed('a'), await routed('b'), (await t.hash('meta')).used]).toEqual([3, 3, '6']);
      expect([await lateOf(refs[0] as string), await lateOf(refs[3] as string)]).toEqual([1, 0]);
      refs.push(...(await t.send('k')));
      const claimed: string[] = [];
      for (let i = 0; i < 5; i++) {
        for (const claim of (await d.exchange()).claims) {
          if (claim.slot === t.slot('a') && claim.lane.endsWith('k')) claimed.push(claim.ref);
          d.end(claim);
        }
      }
      expect(claimed).toEqual([refs[0], refs[2], refs[4]]);
      expect(await t.advanceAll()).toBe(0);
    });

    test('that is paused is not advanced', async () => {
      const { t } = await start();
      await t.setRow('a', PAUSED);
      await t.send('k');
      const before = await t.hash('positions');
      expect(await t.advance()).toMatchObject({ events: 0, more: false });
      expect(await t.hash('positions')).toEqual(before);
    });

    test('is advanced together with others at the same position, starting near the tail', async () => {
      const { t, routed } = await start(['a', 'b', 'c']);
      await t.setRow('a', PAUSED);
      await t.send('k');
      await t.setRow('b', PAUSED);
      await t.setRow('c', PAUSED);
      await t.send('k', 'k');
      for (const name of ['a', 'b', 'c']) await t.setRow(name, {});
      expect(await t.advance()).toMatchObject({ events: 2, references: 4, more: true });
      expect(Object.keys(await t.hash('positions'))).toEqual([t.slot('a')]);
      expect(await t.advance()).toMatchObject({ events: 3, references: 3, more: false });
      expect([await routed('a'), await routed('b'), await routed('c')]).toEqual([3, 3, 3]);
    });

    test('waits for others that are closer to the tail, even if they are resumed in between', async () => {
      const { t, routed } = await start(['a', 'b', 'c']);
      await t.setRow('a', PAUSED);
      await t.setRow('c', PAUSED);
      await t.send(...Array<string>(64).fill('k'));
      await t.send('k');
      await t.setRow('a', {});
      await t.setRow('c', {});
      expect(await t.advance()).toMatchObject({ references: 64, more: true });
      await t.setRow('b', PAUSED);
      await t.send('l');
      await t.setRow('b', {});
      expect(await t.advance()).toMatchObject({ references: 1, more: true });
      expect(await routed('b')).toBe(66);
      await t.setRow('c', PAUSED);
      expect(await t.advance()).toMatchObject({ references: 34, more: false });
      expect([await routed('a'), await routed('c')]).toEqual([66, 32]);
      await t.setRow('c', {});
      expect(await t.advance()).toMatchObject({ references: 34, more: false });
      expect([await routed('c'), await t.hash('positions')]).toEqual([66, {}]);
      expect((await t.hash('meta')).cohort).toBeUndefined();
    });

    test('does not receive events from before its key was activated, or before it was created', async () => {
      const { t, routed } = await start();
      await t.setRow('a', PAUSED);
      await t.deactivate('a', 'k');
      const [ref = ''] = await t.send('k', 'l');
      await t.activate('a', 'k');
      await t.send('k');
      await t.setRow('a', {});
      expect(await t.advanceAll()).toBe(2);
      await t.setRow('c', { since: ref }, 'behind');
      await t.setRow('a', { ...PAUSED, since: ref });
      await t.send('l');
      const [last = ''] = await t.send('l');
      await t.setRow('a', { since: last });
      expect(await t.advanceAll()).toBe(0);
      expect(await routed()).toBe(2);
    });

    test('that skips does not receive the events of its pause', async () => {
      const { t, routed } = await start();
      await t.setRow('a', PAUSED);
      await t.send('k');
      await t.setRow('a', {}, 'skip');
      expect(await t.advanceAll()).toBe(0);
      expect(await routed()).toBe(0);
    });

    test('receives up to 64 events per call, and passes up to 256 that are not for it', async () => {
      const { t, routed } = await start();
      await t.setRow('a', PAUSED);
      for (let i = 0; i < 5; i++) await t.send(...Array.from({ length: 60 }, () => 'other'));
      for (let i = 0; i < 2; i++) await t.send(...Array.from({ length: 60 }, () => 'k'));
      await t.setRow('a', {});
      const passed = { answer: 'OK', more: true, hold: undefined } as const;
      expect(await t.advance()).toEqual({ ...passed, events: 256, references: 0 });
      expect(await t.advance()).toEqual({ ...passed, events: 44 + 64, references: 64 });
      expect(await t.advance()).toEqual({ ...passed, events: 56, references: 56, more: false });
      expect(await routed()).toBe(120);
    });

    test('is advanced by an event per call if it is one of many', async () => {
      const names = Array.from({ length: 40 }, (_, i) => `s${i}`);
      const { t, routed } = await start(names);
      for (const name of names) await t.setRow(name, PAUSED);
      await t.send('k', 'k');
      for (const name of names) await t.setRow(name, {});
      expect(await t.advance()).toMatchObject({ events: 1, references: 40, more: true });
      expect(await t.advance()).toMatchObject({ events: 1, references: 40, more: false });
      expect([await routed('s0'), await routed('s39')]).toEqual([2, 2]);
    });

    test('stops without a payer, and continues when there is one', async () => {
      const { t, routed } = await start();
      await t.setRow('a', PAUSED);
      await t.send('k', 'k', 'k');
      await t.setRow('a', {});
      await t.change({ kind: 'meta', field: 'granted', value: '5' });
      expect(await t.advance()).toMatchObject({ references: 2, more: false, hold: 'tokens' });
      await t.send('k');
      expect([await routed('a'), await routed('b')]).toEqual([2, 3]);
      await t.change({ kind: 'meta', field: 'granted', value: '' });
      expect(await t.advanceAll()).toBe(3);
      expect([await routed('a'), await routed('b'), (await t.hash('meta')).used]).toEqual([4, 4, '8']);
    });
  });

  describe('a part that is held back', () => {
    test('is held back while its activations are incomplete, and then routed up to the tail', async () => {
      const { t, routed } = await start();
      await redis().call('hdel', t.keys.keys, '');
      await t.send('k', 'k');
      expect(await t.advance()).toEqual({ answer: 'CLOSED' });
      await t.change({ kind: 'marker' });
      await t.deactivate('b', 'k');
      await t.send('k');
      expect(await t.advance()).toEqual({ answer: 'OK', events: 3, references: 3, more: false, hold: undefined });
      const { hold, pos } = await t.hash('meta');
      expect([hold, pos]).toEqual([undefined, undefined]);
      await t.send('k');
      expect([await routed('a'), await routed('b')]).toEqual([4, 0]);
    });

    test('does not advance subscriptions that are behind', async () => {
      const { t, routed } = await start();
      await t.setRow('a', PAUSED);
      await t.send('k');
      await t.change({ kind: 'meta', field: 'granted', value: '1' });
      await t.send('k');
      await t.setRow('a', {});
      await t.change({ kind: 'meta', field: 'granted', value: '100' });
      expect(await t.advance()).toMatchObject({ references: 1, more: true, hold: undefined });
      expect([await routed('a'), await routed('b')]).toEqual([0, 2]);
      expect(await t.advanceAll()).toBe(2);
    });

    test('routes a wide event in slices, once to each of its subscriptions', async () => {
      const { t, lateOf } = await start([]);
      const names = Array.from({ length: 1_100 }, (_, i) => `s${i}`);
      for (let at = 0; at < names.length; at += 300) {
        for (const name of names.slice(at, at + 300)) await t.setRow(name, {});
        const keys = names
          .slice(at, at + 300)
          .map(name => ({ kind: 'on' as const, slot: t.slot(name), groupKey: 'w' }));
        await t.change(...keys);
      }
      const [wide = ''] = await t.send('w');
      await t.send('w');
      const first = await t.advance();
      expect(first).toMatchObject({ events: 0, references: 512, more: true, hold: 'wide' });
      await t.deactivate('s5', 'w');
      await t.activate('s5', 'w');
      expect(await t.advanceAll()).toBe(1_100 - 512 + 1_099);
      expect(await lateOf(wide)).toBe(1_100);
      expect((await t.members('pending')).length).toBe(1_100 + 1_099);
    });

    test('continues with a wide event after tokens ran out between its slices', async () => {
      const { t, lateOf } = await start([]);
      const names = Array.from({ length: 700 }, (_, i) => `s${i}`);
      for (const name of names) await t.setRow(name, {});
      await t.change(...names.map(name => ({ kind: 'on' as const, slot: t.slot(name), groupKey: 'w' })));
      await t.change({ kind: 'meta', field: 'granted', value: '600' });
      const [wide = ''] = await t.send('w');
      expect(await t.advance()).toMatchObject({ references: 512, hold: 'wide' });
      expect(await t.advance()).toMatchObject({ references: 0, more: false, hold: 'tokens' });
      await t.change({ kind: 'meta', field: 'granted', value: '' });
      expect(await t.advanceAll()).toBe(700 - 512);
      expect([await lateOf(wide), (await t.hash('meta')).used]).toEqual([700, '700']);
    });

    test('routes a wide event once to a subscription that is paused between its slices', async () => {
      const { t, routed, lateOf } = await start([]);
      const names = Array.from({ length: 700 }, (_, i) => `s${i}`);
      for (const name of names) await t.setRow(name, {});
      await t.change(...names.map(name => ({ kind: 'on' as const, slot: t.slot(name), groupKey: 'w' })));
      const [wide = ''] = await t.send('w');
      expect(await t.advance()).toMatchObject({ references: 512, hold: 'wide' });
      const [before, after] = ['s0', 's699'] as const;
      for (const name of [before, after]) await t.setRow(name, PAUSED);
      expect([await routed(before), await routed(after)]).toEqual([1, 0]);
      expect(await t.advanceAll()).toBe(700 - 512 - 1);
      for (const name of [before, after]) await t.setRow(name, {});
      expect(await t.advanceAll()).toBe(1);
      expect([await routed(before), await routed(after)]).toEqual([1, 1]);
      expect([await lateOf(wide), (await t.hash('meta')).used]).toEqual([700, '700']);
    });
  });
});
