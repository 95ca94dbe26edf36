import { expect, test } from 'vitest';
import { refOfStreamId } from '../core/ids/refs.ts';
import { createBacklogStore } from './backlog.ts';
import { inboxKeys, queueKeys } from './keys.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createTenant, items, QUEUE, START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  function start(names: readonly string[]) {
    const t = createTenant(redis());
    const inboxes = names.map(name => t.inboxOf(name));
    return { t, inboxes, store: createBacklogStore(redis()) };
  }
  const at = (seconds: number, groupKey = 'k') => ({ id: `${START_MS + seconds * 1_000}-0`, groupKey });

  test('what the router has not brought: after the position of each, or after its own', async () => {
    const { t, inboxes, store } = start(['x', 'y', 'z']);
    await t.apply(t.routes({ x: {}, y: {}, z: {} }));
    const q = queueKeys(t.tenant, QUEUE, 'gen1');
    const read = () => store.readUnrouted(t.tenant, QUEUE, 'gen1', inboxes);
    expect(await read()).toEqual([undefined, undefined, undefined]);
    for (const { id } of [at(1), at(2), at(3)]) await redis().call('xadd', q.events, id, 'g', 'k', 'b', '4');
    expect(await read()).toEqual([START_MS + 1_000, START_MS + 1_000, START_MS + 1_000]);
    await redis().call('hset', q.meta, 'cur', at(3).id);
    await redis().call('hset', q.behind, `${t.nameOf('x')}/sub_x.inc1`, at(1).id, `${t.nameOf('y')}/sub_y.inc1`, '0-0');
    expect(await read()).toEqual([START_MS + 2_000, START_MS + 1_000, undefined]);
    expect(await store.readUnrouted(t.tenant, QUEUE, 'gen1', [])).toEqual([]);
  });

  test('the oldest open event of each inbox, whatever its group key, and whatever was settled before', async () => {
    const { t, inboxes, store } = start(['x']);
    await t.apply(t.routes({ x: {} }));
    for (const key of ['a', 'b', 'c']) await t.activate('x', key);
    const looks = inboxes.map(inbox => ({ ...inbox, settledTo: '0-0' }));
    expect(await store.readOldestOpen(looks)).toEqual([{ ms: undefined, exact: true, settledTo: '0-0' }]);
    t.clock.ms = START_MS + 60_000;
    const entries = [at(1, 'c'), at(2, 'b'), at(3, 'a')];
    await t.inboxes.route(
      inboxes[0] as (typeof inboxes)[0],
      START_MS + 5_000,
      START_MS,
      'gen1',
      'acc_payer',
      items(entries),
    );
    expect(await store.readOldestOpen(looks)).toEqual([{ ms: START_MS + 1_000, exact: true, settledTo: '0-0' }]);
    const x = inboxKeys(t.nameOf('x'), 'sub_x', 'inc1');
    await redis().call('zrem', x.pending, `c\0${refOfStreamId(at(1).id)}`);
    expect(await store.readOldestOpen(looks)).toEqual([{ ms: START_MS + 2_000, exact: true, settledTo: '0-0' }]);
  });

  test('of a long inbox: a part of its log a call, and on from where that ended', async () => {
    const { t, inboxes, store } = start(['x']);
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    const entries = Array.from({ length: 1_700 }, (_, n) => at(n / 1_000));
    const inbox = inboxes[0] as (typeof inboxes)[0];
    for (let from = 0; from < entries.length; from += 200) {
      await t.inboxes.route(
        inbox,
        START_MS + 5_000,
        START_MS,
        'gen1',
        'acc_payer',
        items(entries.slice(from, from + 200)),
      );
    }
    const x = inboxKeys(t.nameOf('x'), 'sub_x', 'inc1');
    const settled = entries.slice(0, 1_100).map(({ id }) => `k\0${refOfStreamId(id)}`);
    await redis().call('zrem', x.pending, ...settled);
    const look = async (settledTo: string) =>
      (
        await store.readOldestOpen([
          { ...inbox, settledTo: '0-0' },
          { ...inbox, settledTo },
        ])
      )[1];
    const first = await look('0-0');
    expect(first).toEqual({ ms: START_MS + 499, exact: false, settledTo: entries[499]?.id });
    const second = await look(first?.settledTo as string);
    expect(second).toEqual({ ms: START_MS + 999, exact: false, settledTo: entries[999]?.id });
    expect(await look(second?.settledTo as string)).toEqual({
      ms: START_MS + 1_100,
      exact: true,
      settledTo: entries[1_099]?.id,
    });
  });
});
