import { describe, expect, test } from 'vitest';
import { createTestPart, READY_MS, row } from '../../../test/support/part/part.ts';
import { countCommand } from '../../redis/testing/count-command.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from '../claims/message.ts';
import type { SubscriptionRow } from './subscription-row.ts';

onEachRedis(redis => {
  async function start(fields: Partial<SubscriptionRow> = {}) {
    const t = createTestPart(redis());
    await t.setUp({ a: fields, b: {} }, ['k', 'l']);
    const d = t.dispatcher('d1');
    const routed = async (name = 'a') => (await t.counts(name))[1];
    const position = async (name = 'a') => (await t.hash('positions'))[t.slot(name)];
    return { t, d, routed, position };
  }
  const PAUSED = { route: 'paused', send: 'held' } as const;

  describe('a pause', () => {
    test('stops at the tail, so that nothing is routed or claimed afterwards', async () => {
      const { t, d, routed, position } = await start();
      const [ref] = await t.send('k');
      const { tail } = await t.setRow('a', PAUSED);
      expect([tail, await position()]).toEqual([ref, ref]);
      await t.send('k', 'l');
      expect(await routed()).toBe(1);
      expect(await routed('b')).toBe(3);
      const { claims } = await d.exchange();
      expect(new Set(claims.map(({ slot }) => slot))).toEqual(new Set([t.slot('b')]));
    });

    test('of a subscription that is behind keeps its position', async () => {
      const { t, routed, position } = await start();
      const [first] = await t.send('k');
      await t.setRow('a', PAUSED);
      await t.send('k');
      await t.setRow('a', {});
      await t.send('k');
      expect(await position()).toBe(first);
      await t.setRow('a', PAUSED);
      expect(await position()).toBe(first);
      expect(await routed()).toBe(1);
    });

    test('without events ends immediately', async () => {
      const { t, routed, position } = await start();
      await t.send('k');
      await t.setRow('a', PAUSED);
      await t.setRow('a', {});
      expect(await position()).toBeUndefined();
      await t.send('k');
      expect(await routed()).toBe(2);
    });

    test('that ends with a skip omits its events', async () => {
      const { t, routed, position } = await start();
      await t.setRow('a', PAUSED);
      await t.send('k');
      await t.setRow('a', {}, 'skip');
      expect(await position()).toBeUndefined();
      await t.send('k');
      expect(await routed()).toBe(1);
    });

    test('in a held part stops at the position of the part, and skips to the tail', async () => {
      const { t, position } = await start();
      const [before] = await t.send('k');
      await redis().call('hdel', t.keys.keys, '');
      const [after] = await t.send('k');
      await t.setRow('a', PAUSED);
      expect(await position()).toBe(before);
      await t.setRow('a', {});
      expect(await position()).toBe(before);
      await t.setRow('a', PAUSED);
      await t.setRow('a', {}, 'skip');
      expect(await position()).toBe(after);
    });

    test('of a subscription that is closed is removed', async () => {
      const { t, position } = await start();
      await t.setRow('a', PAUSED);
      await t.setRow('a', { route: 'closed', send: 'held' });
      expect(await position()).toBeUndefined();
      await t.change({ kind: 'drop', slot: t.slot('a') });
      expect(Object.keys(await t.hash('subs'))).toEqual([t.slot('b')]);
    });
  });

  describe('a new subscription', () => {
    test('is routed from now on, or waits at the tail until it is live', async () => {
      const { t, routed, position } = await start();
      const [ref] = await t.send('k');
      for (const [name, how] of [['c'], ['e', 'behind']] as const) {
        await t.setRow(name, {}, how);
        await t.activate(name, 'k');
      }
      expect([await position('c'), await position('e')]).toEqual([undefined, ref]);
      await t.send('k');
      expect([await routed('c'), await routed('e')]).toEqual([1, 0]);
    });

    test('in a held part starts at the tail', async () => {
      const { t, position } = await start();
      await redis().call('hdel', t.keys.keys, '');
      const [ref] = await t.send('k');
      await t.setRow('c', {});
      expect(await position('c')).toBe(ref);
    });
  });

  describe('a deactivation', () => {
    test('parks waiting events of this key, which continue after an activation', async () => {
      const { t, d, routed } = await start();
      await t.send('k', 'l');
      await t.deactivate('a', 'k');
      await t.send('k');
      expect(await routed()).toBe(2);
      const lanes = (await d.exchange()).claims.map(({ lane }) => lane).toSorted();
      expect(lanes).toEqual([`${t.slot('a')}l`, `${t.slot('b')}k`, `${t.slot('b')}l`].toSorted());
      expect(Object.keys(await t.hash('off'))).toEqual([`${t.slot('a')}k`]);
      await t.activate('a', 'k');
      expect(await t.hash('off')).toEqual({});
      expect((await d.exchange()).claims.map(({ lane }) => lane)).toEqual([`${t.slot('a')}k`]);
    });

    test('lets an attempt in progress finish, but starts no other', async () => {
      const { t, d } = await start();
      await t.send('k', 'k');
      const claims = (await d.exchange()).claims.filter(({ slot }) => slot === t.slot('a'));
      await t.deactivate('a', 'k');
      d.end(claims[0] as Claim);
      expect((await d.exchange()).claims).toEqual([]);
      await t.activate('a', 'k');
      expect((await d.exchange()).claims).toHaveLength(1);
    });

    test('that is reverted during an attempt does not change anything', async () => {
      const { t, d } = await start();
      await t.send('k', 'k');
      const [claim] = (await d.exchange()).claims.filter(({ slot }) => slot === t.slot('a'));
      await t.deactivate('a', 'k');
      await t.activate('a', 'k');
      d.end(claim as Claim);
      expect((await d.exchange()).claims).toMatchObject([{ slot: t.slot('a') }]);
    });

    test.each([
      ['failed', 'failed'],
      ['given back', 'released'],
    ] as const)('parks an attempt that was %s', async (_name, outcome) => {
      const { t, d } = await start();
      await t.send('k');
      const [claim] = (await d.exchange()).claims.filter(({ slot }) => slot === t.slot('a'));
      await t.deactivate('a', 'k');
      d.end(claim as Claim, outcome, { dueMs: t.clock.ms + 1 });
      t.clock.ms += 10;
      expect((await d.exchange()).claims).toEqual([]);
      await t.activate('a', 'k');
      expect((await d.exchange()).claims).toHaveLength(1);
    });

    test('followed by an activation does not make any retry early', async () => {
      const { t, d } = await start();
      await t.send('k');
      const [claim] = (await d.exchange()).claims.filter(({ slot }) => slot === t.slot('a'));
      d.end(claim as Claim, 'failed', { dueMs: t.clock.ms + 5_000 });
      await d.exchange();
      await t.deactivate('a', 'k');
      t.clock.ms += 1_000;
      await t.activate('a', 'k');
      expect(await d.exchange()).toMatchObject({ claims: [], dueMs: t.clock.ms + 4_000 });
      await t.deactivate('a', 'k');
      t.clock.ms += 4_000;
      expect((await d.exchange()).claims).toEqual([]);
      await t.activate('a', 'k');
      expect((await d.exchange()).claims).toMatchObject([{ attempts: 1 }]);
    });

    test('also holds events without order: waiting events, and events whose attempt fails', async () => {
      const { t, d } = await start({ unordered: true, cap: 1 });
      await t.send('k', 'k', 'k');
      const claims = (await d.exchange()).claims.filter(({ slot }) => slot === t.slot('a'));
      expect(claims).toHaveLength(2);
      await t.deactivate('a', 'k');
      d.end(claims[0] as Claim, 'failed', { dueMs: t.clock.ms });
      d.end(claims[1] as Claim);
      t.clock.ms += 1;
      expect((await d.exchange()).claims).toEqual([]);
      expect((await d.exchange()).claims).toEqual([]);
      await t.activate('a', 'k');
      expect((await d.exchange()).claims).toHaveLength(2);
    });

    test('also holds events whose claims have lapsed', async () => {
      const { t, d } = await start({ unordered: true });
      await t.send('k');
      await d.exchange();
      await t.deactivate('a', 'k');
      t.clock.ms += READY_MS;
      await t.evict('d1');
      const claims = [...(await d.exchange()).claims, ...(await d.exchange()).claims];
      expect(claims.map(({ slot }) => slot)).toEqual([t.slot('b')]);
    });

    test('that is too large for one call is undone by repeated calls', async () => {
      const { t, d } = await start({ unordered: true, cap: 2_000 });
      for (let i = 0; i < 20; i++) await t.send(...Array.from({ length: 60 }, () => 'k'));
      await t.deactivate('a', 'k');
      await t.setRow('b', PAUSED);
      for (let i = 0; i < 25; i++) await d.exchange();
      expect(Object.values(await t.hash('lanes')).filter(state => state === 'p')).toHaveLength(1_200);
      expect(await t.activate('a', 'k')).toMatchObject({ changes: 1, more: true });
      expect(await t.activate('a', 'k')).toMatchObject({ changes: 0, more: false });
      expect(await t.hash('off')).toEqual({});
      expect(await t.hash('lanes')).not.toContain('p');
      expect(d.held.size).toBe(0);
    });
  });

  describe('every write', () => {
    test('is refused for a deposed leader, as a whole', async () => {
      const { t } = await start();
      const change = { kind: 'row' as const, slot: t.slot('a'), row: row({ cap: 1 }) };
      expect(await t.gate(t.part, 5, [])).toMatchObject({ answer: 'OK', changes: 0 });
      expect(await t.gate(t.part, 4, [change])).toEqual({ answer: 'FENCED' });
      expect(await t.gate(t.part, 5, [change])).toMatchObject({ answer: 'OK', changes: 1 });
    });

    test('that changes nothing does not write anything', async () => {
      const { t } = await start();
      await t.activate('a', 'x');
      const commands = ['hset', 'hdel', 'zadd', 'zrem', 'spublish'];
      const count = () => Promise.all(commands.map(command => countCommand(redis(), command)));
      const before = await count();
      const answer = await t.change(
        { kind: 'marker' },
        { kind: 'meta', field: 'state', value: 'open' },
        { kind: 'row', slot: t.slot('a'), row: row() },
        { kind: 'on', slot: t.slot('a'), groupKey: 'x' },
        { kind: 'off', slot: t.slot('a'), groupKey: 'y' },
        { kind: 'endpoint', slot: t.slot('a'), sealed: '' },
      );
      expect(answer.changes).toBe(0);
      expect(await count()).toEqual(before);
    });

    test('changes the version in messages and responses if rows, endpoints, or the retention change', async () => {
      const { t, d } = await start();
      const version = async () => (await d.exchange(0)).version;
      const first = await version();
      await t.activate('a', 'x');
      expect(await version()).toBe(first);
      await t.change({ kind: 'endpoint', slot: t.slot('a'), sealed: 's' });
      const second = await version();
      await t.setRow('a', { cap: 3 });
      const third = await version();
      for (let i = 0; i < 2; i++) await t.change({ kind: 'meta', field: 'retentionMs', value: '3600000' });
      const fourth = await version();
      expect(Number(fourth)).toBe(Number(third) + 1);
      expect(new Set([first, second, third, fourth]).size).toBe(4);
    });

    test('of another generation is refused until this generation starts; then all data of the previous one is ignored', async () => {
      const { t } = await start();
      await t.send('k');
      const next = { ...t.part, gen: 'gen2' };
      const change = { kind: 'meta' as const, field: 'state' as const, value: 'closing' };
      expect(await t.gate(next, 1, [change])).toEqual({ answer: 'GONE' });
      expect(await t.gate(next, 1, [{ kind: 'begin' }, change])).toMatchObject({ answer: 'OK', changes: 2 });
      const { fence, gen, state, ...others } = await t.hash('meta');
      expect({ fence, gen, state }).toEqual({ fence: '1', gen: 'gen2', state: 'closing' });
      // Counts that are missing from the producer's series are kept, and a version is never reused.
      expect(Object.keys(others).toSorted()).toEqual(['cfgv', 'in', 'maxBytes', 'version']);
    });

    test('of an activation returns the last event that it does not apply to', async () => {
      const { t, routed } = await start();
      const [ref] = await t.send('x');
      const { tail } = await t.activate('a', 'x');
      expect(tail).toBe(ref);
      expect((await t.hash('keys')).x).toBe(t.slot('a') + ref);
      await t.activate('a', 'x');
      await t.send('x');
      expect(await routed()).toBe(1);
    });
  });
});
