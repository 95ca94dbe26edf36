import { expect, test } from 'vitest';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import { integrationKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { type Part, partKeys } from '../keys.ts';
import { createPartsControl } from './parts-control.ts';

onEachRedis(redis => {
  function start() {
    const t = createTenant(redis());
    const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const { keys, meta } = partKeys(part);
    const { act } = integrationKeys(t.nameOf('a'));
    let control = createPartsControl(redis(), t.control, t.nowMs);
    const opened = (groupKeys: readonly string[]) => () =>
      new Map([[t.nameOf('a'), groupKeys.map(groupKey => ({ groupKey, sinceMs: t.clock.ms }))]]);
    return {
      t,
      keys,
      meta,
      /** Writes routes to the parts. The routes of a new leader are unknown. */
      async apply(want: TenantRoutes, groupKeys: readonly string[], had?: TenantRoutes) {
        const isKnown = had !== undefined;
        const have = had ?? (await control.readTenant(t.tenant, t.fence.epoch)).routes;
        await control.applyParts({ fence: t.fence.epoch, have, want, isKnown, openKeys: opened(groupKeys) });
      },
      set: (groupKey: string, isOpen: boolean) =>
        control.setActivation(t.fence.epoch, t.nameOf('a'), groupKey, isOpen ? t.clock.ms : null),
      pause: (routes: TenantRoutes, groupKeys: readonly string[]) =>
        control.closeParts(t.fence.epoch, routes, opened(groupKeys)),
      drop: () => control.dropInbox(t.fence.epoch, t.tenant, t.inboxOf('a'), 0),
      changeLeader() {
        t.fence.epoch++;
        control = createPartsControl(redis(), t.control, t.nowMs);
      },
      loseRecord: () => redis().call('del', act),
      open: async () => ((await redis().call('hkeys', keys)) as string[]).filter(key => key !== '').toSorted(),
    };
  }

  test('closes activations in the parts that are missing from the record, once', async () => {
    const w = start();
    await w.apply(w.t.routes({ a: {} }), []);
    await w.set('k', true);
    await w.loseRecord();
    expect(await w.set('k', false)).toBe(true);
    expect(await w.open()).toEqual([]);
    expect(await w.set('k', false)).toBe(false);
  });

  test('closes an activation that was opened with a new subscription', async () => {
    const w = start();
    const empty = w.t.routes({});
    await w.apply(empty, []);
    await w.apply(w.t.routes({ a: {} }), ['k', 'l'], empty);
    expect(await w.set('k', false)).toBe(true);
    expect(await w.open()).toEqual(['l']);
  });

  test('a leader that has not read the parts closes everything that is not recorded', async () => {
    const w = start();
    const routes = w.t.routes({ a: {} });
    await w.t.apply(routes);
    await w.apply(routes, ['k']);
    w.changeLeader();
    await w.apply(routes, ['k'], routes);
    expect(await w.set('k', false)).toBe(true);
    expect(await w.open()).toEqual([]);
  });

  test('a pause closes activations that no object opens and that are not recorded', async () => {
    const w = start();
    const routes = w.t.routes({ a: {} });
    await w.apply(routes, ['k', 'l']);
    w.changeLeader();
    await w.pause(routes, ['l', 'm']);
    expect(await w.open()).toEqual(['l']);
  });

  test('closes all activations of a subscription that is removed', async () => {
    const w = start();
    await w.apply(w.t.routes({ a: {} }), ['k']);
    await w.drop();
    expect(await w.open()).toEqual([]);
  });

  test('closing a closed activation costs one read command', async () => {
    const w = start();
    const routes = w.t.routes({ a: {} });
    await w.t.apply(routes);
    await w.apply(routes, ['open']);
    w.changeLeader();
    await w.apply(routes, ['open']);
    await w.set('k', true);
    await w.set('k', false);
    const before = redis().commandsSent();
    for (const groupKey of ['k', 'never', 'k']) expect(await w.set(groupKey, false)).toBe(false);
    expect(redis().commandsSent() - before).toBe(3);
    expect(await w.open()).toEqual(['open']);
  });

  test('there is nothing to close if the part and the record are lost', async () => {
    const w = start();
    await w.apply(w.t.routes({ a: {} }), ['k']);
    await redis().call('del', w.keys, w.meta);
    expect(await w.set('k', false)).toBe(false);
  });
});
