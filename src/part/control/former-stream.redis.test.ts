import { expect, test } from 'vitest';
import { withClock } from '../../../test/support/part/clock.ts';
import { putRoutes } from '../../../test/support/part/routes.ts';
import { createTenant } from '../../record/testing/tenant.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { type Part, partKeys } from '../keys.ts';
import { createIngest } from '../log/ingest.ts';
import { createPartsControl } from './parts-control.ts';

onEachRedis(redis => {
  /** Replaces a stream that has stored this many events, as after a restore. Returns what was reported as lost. */
  async function replace(events: number, isKnown: boolean) {
    const t = createTenant(redis());
    const client = { ...redis(), ...withClock(redis(), t.nowMs) };
    const lost: unknown[] = [];
    const control = createPartsControl(client, t.control, t.nowMs, (part, left) => lost.push([part, left]));
    const part: Part = { ...t.queue, gen: 'gen1', number: 0 };
    const held = { sub: { route: 'paused', send: 'held' } } as const;
    await putRoutes(control, { fence: 1, want: t.routes({ x: held }), isKnown: false, openKeys: () => new Map() });
    await control.setActivation(1, t.nameOf('x'), 'k', t.clock.ms);
    const { cfgv = '' } = await redis().readHash(partKeys(part).meta);
    for (let n = 0; n < events; n++) {
      t.clock.ms += 1_000;
      await createIngest(client, t.nowMs)(part, cfgv, [{ groupKey: 'k', meta: '{"s":"/x"}', body: Buffer.from('b') }]);
    }
    expect(lost).toEqual([]);
    const want = t.routes({ x: { sub: { inc: 'inc2' } } }, { gen: 'gen2' });
    await putRoutes(control, { fence: 1, want, isKnown, openKeys: () => new Map() });
    expect(await redis().call('hget', partKeys({ ...part, gen: 'gen2' }).meta, 'gen')).toBe('gen2');
    return { lost, part };
  }

  test.each([
    ['the leader', true],
    ['a new leader', false],
  ] as const)('%s reports the undelivered events of a former stream', async (_who, isKnown) => {
    const { lost, part } = await replace(2, isKnown);
    expect(lost).toEqual([[part, { unrouted: 1, open: 0 }]]);
  });

  test('a former stream without undelivered events is not reported', async () => {
    expect((await replace(0, false)).lost).toEqual([]);
  });
});
