import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import { type Actor, everySchedule, interleave, type Step } from '../../dataplane/testing/interleaving.ts';
import { createTenant, QUEUE } from '../../record/testing/tenant.ts';
import type { RedisClient } from '../../redis/client.ts';
import { integrationKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { type Part, partKeys } from '../keys.ts';
import { createPartsControl } from './parts-control.ts';

/** Makes each call that reads or writes activations a step of the actor that has made it. */
function createStepping(redis: RedisClient, acting: AsyncLocalStorage<Step>): RedisClient {
  const step: Step = (label, call) => acting.getStore()?.(label, call) ?? call();
  return {
    ...redis,
    run: (name, ...rest) => (name === 'act' ? step(name, () => redis.run(name, ...rest)) : redis.run(name, ...rest)),
    runNamed: (script, call) => step(script.name, () => redis.runNamed(script, call)),
    call: (command, ...rest) => step(command, () => redis.call(command, ...rest)),
  };
}

onEachRedis(redis => {
  function start(client = redis()) {
    const t = createTenant(client);
    const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
    const { keys, meta } = partKeys(part);
    const { act } = integrationKeys(t.nameOf('a'));
    let control = createPartsControl(client, t.control, t.nowMs);
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
        control = createPartsControl(client, t.control, t.nowMs);
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

  test.each<[string, readonly (readonly [groupKey: string, isOpen: boolean])[]]>([
    ['opens a group key', [['k', true]]],
    ['closes a group key', [['l', false]]],
    [
      'opens and closes a group key',
      [
        ['k', true],
        ['k', false],
      ],
    ],
    [
      'closes and opens a group key',
      [
        ['l', false],
        ['l', true],
      ],
    ],
  ])('leaves nothing of a subscription that is removed while another call %s', async (_what, changes) => {
    const acting = new AsyncLocalStorage<Step>();
    const actor = (name: string, faults: Actor['faults'], work: () => Promise<unknown>): Actor => ({
      name,
      faults,
      run: step => acting.run(step, async () => void (await work())),
    });
    const bounds = { preemptions: 1, faults: 1, pairwise: true };
    const runs = await everySchedule(bounds, async choose => {
      const w = start(createStepping(redis(), acting));
      const routes = w.t.routes({ a: {} });
      await w.t.apply(routes);
      await w.apply(routes, []);
      await w.set('l', true);
      const changing = async () => {
        for (const [groupKey, isOpen] of changes) await w.set(groupKey, isOpen);
      };
      // The removal is repeated until it succeeds.
      const dropping = () => w.drop().catch(w.drop);
      const actors = [actor('drop', ['answer lost', 'not done'], dropping), actor('set', [], changing)];
      const trace = await interleave(actors, choose);
      expect(await w.open(), trace.join('\n')).toEqual([]);
      expect(trace.filter(line => line.includes(' ends: '))).toEqual([]);
    });
    expect(runs).toBeGreaterThan(10);
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
