import { describe, expect, test } from 'vitest';
import { event, READY_MS, startPart, type TestDispatcher, type TestPart } from '../../../test/support/part/part.ts';
import { NOT_PUSHED } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Claim } from '../claims/message.ts';
import { createFinish } from '../owner/finish.ts';
import { createReadClaimedBodies } from './claimed-bodies.ts';

/** The size of a body whose end is stored in the log. */
const BODY = Buffer.alloc(20_574, 'x');

onEachRedis(redis => {
  /** A large event that is claimed for the subscriptions a and b. */
  async function start() {
    const { t, d } = await startPart(redis(), { a: {}, b: {} }, ['k', 'l']);
    await t.ingest(event('k', { body: BODY }));
    const { claims } = await d.exchange(64, NOT_PUSHED);
    const laneOf = (name: string) => `${t.slot(name)}k`;
    const [{ ref }] = claims as [Claim];
    const read = createReadClaimedBodies(t.client);
    const lanes = ['a', 'b'].map(laneOf);
    const readAs = async (name: string, part = t.part) => {
      const [{ body, usable }] = (await read(part, name, [{ ref, lanes }])) as [Awaited<ReturnType<typeof read>>[0]];
      return { body: body?.length, usable };
    };
    return { t, d, ref, lanes, read, readAs };
  }

  describe('bodies of claimed events', () => {
    test('are read once for all claims of an event', async () => {
      const { t, d, ref, lanes, read } = await start();
      const other = Buffer.alloc(17_000, 'y');
      await t.ingest(event('l', { body: other }));
      const { claims } = await d.exchange();
      const events = [
        { ref, lanes },
        { ref: claims[0]?.ref ?? '', lanes: claims.map(({ lane }) => lane) },
      ];
      expect(claims).toHaveLength(2);
      expect(await read(t.part, 'd1', events)).toEqual([
        { body: BODY, usable: [true, true] },
        { body: other, usable: [true, true] },
      ]);
    });

    test('are missing if the event has expired', async () => {
      const { t, ref, readAs } = await start();
      await redis().call('hdel', t.keys.body, ref);
      expect(await readAs('d1')).toEqual({ body: undefined, usable: [true, true] });
    });

    test('are not read if no claim can be used', async () => {
      const { t, readAs } = await start();
      const nothing = { body: undefined, usable: [false, false] };
      expect(await readAs('d2')).toEqual(nothing);
      expect(await readAs('d1', { ...t.part, gen: 'another' })).toEqual(nothing);
      t.clock.ms += READY_MS;
      await t.evict('d1');
      expect(await readAs('d1')).toEqual(nothing);
      await t.dispatcher('d2').exchange();
      expect(await readAs('d1')).toEqual(nothing);
      expect(await readAs('d2')).toEqual({ body: BODY.length, usable: [true, true] });
    });
  });

  test('no claim can be used while control data is missing', async () => {
    const { t, readAs } = await start();
    await t.change({ kind: 'meta', field: 'ready', value: '0' });
    expect(await readAs('d1')).toEqual({ body: undefined, usable: [false, false] });
    await t.change({ kind: 'meta', field: 'ready', value: '1' });
    expect(await readAs('d1')).toEqual({ body: BODY.length, usable: [true, true] });
  });

  type Step = (t: TestPart, d: TestDispatcher) => Promise<unknown>;
  const disable: Step = async (t, d) => {
    await t.send('l');
    const { claims } = await d.exchange();
    const claim = claims.find(({ slot }) => slot === t.slot('a')) as Claim;
    d.end(claim, 'gone', { reason: '410' });
    expect((await d.exchange(0)).disabled).toEqual([t.slot('a')]);
  };
  const skip: Step = async (t, d) => {
    const lane = `${t.slot('a')}k`;
    const ref = d.held.get(lane)?.ref ?? '';
    const letters = await createFinish(t.client)({ part: t.part, slot: t.slot('a') }, 's', [{ key: 'k', ref }]);
    expect(letters).toEqual(['o']);
  };

  const deliver: Step = async (t, d) => {
    await t.send('k');
    const lane = `${t.slot('a')}k`;
    d.end(d.held.get(lane) as Claim);
    // The lane continues with the next event.
    expect((await d.exchange()).claims.map(claim => claim.lane)).toEqual([lane]);
  };

  describe('a claim', () => {
    test.each<[string, Step]>([
      ['its group key was deactivated', t => t.deactivate('a', 'k')],
      ['nothing may be sent', t => t.setRow('a', { send: 'held' })],
      ['the subscription is paused', t => t.setRow('a', { route: 'paused', send: 'held' })],
      ['the subscription was deleted', t => t.change({ kind: 'drop', slot: t.slot('a') })],
      ['the event was skipped', skip],
      ['the event was delivered, and another event has the lane', deliver],
      ['the endpoint was disabled', disable],
    ])('cannot be used if %s, and other claims can', async (_reason, step) => {
      const { t, d, readAs } = await start();
      await step(t, d);
      expect(await readAs('d1')).toEqual({ body: BODY.length, usable: [false, true] });
    });

    test.each<[string, Step]>([
      ['another group key was deactivated', t => t.deactivate('a', 'l')],
      [
        'its group key was activated again',
        async t => {
          await t.deactivate('a', 'k');
          await t.activate('a', 'k');
        },
      ],
      [
        'the endpoint was enabled again',
        async (t, d) => {
          await disable(t, d);
          await t.setRow('a', { enabledMs: t.clock.ms + 1 });
        },
      ],
    ])('can be used if %s', async (_reason, step) => {
      const { t, d, readAs } = await start();
      await step(t, d);
      expect((await readAs('d1')).usable).toEqual([true, true]);
    });
  });
});
