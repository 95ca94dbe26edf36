import { expect, test } from 'vitest';
import { createTestPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createActivationLists } from '../control/activation-lists.ts';
import { readView } from '../sandbox/view.ts';
import type { GateChange } from './gate.ts';

onEachRedis(redis => {
  /** Applies changes of one group key in one call. Returns the active slots. */
  async function start() {
    const t = createTestPart(redis());
    const names = Array.from({ length: 400 }, (_, i) => `s${i}`);
    await t.setUp(Object.fromEntries(names.map(name => [name, {}])), []);
    const slots = names.map(t.slot);
    const changesOf = (kind: 'on' | 'off', from: number, till: number) =>
      slots.slice(from, till).map((slot): GateChange => ({ kind, slot, groupKey: 'k' }));
    const read = async () => {
      const lists = createActivationLists();
      const fields = await t.hash('keys');
      for (const [field, text] of Object.entries(fields)) if (field !== '') lists.add(field, text);
      return { ...lists.read(), fields: Object.keys(fields).length - 1 };
    };
    const named = (...ranges: readonly (readonly [number, number])[]) =>
      new Set(ranges.flatMap(([from, till]) => slots.slice(from, till).map(slot => `${slot}k`)));
    return { t, changesOf, read, named };
  }

  test('many activations of a group key in one call have the same result as separate calls', async () => {
    const { t, changesOf, read, named } = await start();
    expect((await t.change(...changesOf('on', 0, 300), ...changesOf('on', 0, 300))).changes).toBe(300);
    expect(await read()).toEqual({ activations: named([0, 300]), damaged: [], fields: 3 });
    // Lists in the middle and at the end become empty and are filled again.
    const some = [...changesOf('off', 100, 300), ...changesOf('off', 100, 300), ...changesOf('on', 300, 400)];
    expect((await t.change(...some)).changes).toBe(300);
    expect(await read()).toEqual({ activations: named([0, 100], [300, 400]), damaged: [], fields: 2 });
    await t.change(...changesOf('off', 0, 400), ...changesOf('on', 7, 9), ...changesOf('off', 7, 8));
    expect(await read()).toEqual({ activations: named([8, 9]), damaged: [], fields: 1 });
    await t.change(...changesOf('off', 8, 9), ...changesOf('off', 8, 9));
    expect(await read()).toEqual({ activations: new Set(), damaged: [], fields: 0 });
    await t.change(...changesOf('on', 0, 200), ...changesOf('off', 128, 200));
    expect(await read()).toEqual({ activations: named([0, 128]), damaged: [], fields: 1 });
  });

  test('the view of a sandbox run contains the slots of all lists', async () => {
    const { t, changesOf } = await start();
    await t.change(...changesOf('on', 0, 300));
    const active = new Set(changesOf('on', 0, 300).map(change => 'slot' in change && change.slot));
    expect((await readView(t.client, t.part, ['k'], []))?.active.get('k')).toEqual(active);
  });

  test('few activations are stored in a table, so that Redis finds one without reading all of them', async () => {
    const { t, changesOf } = await start();
    await t.change(...changesOf('on', 0, 1));
    expect(await redis().call('object', 'encoding', t.keys.keys)).toBe('hashtable');
  });

  test('a slot without a row is not activated', async () => {
    const { t, changesOf, read } = await start();
    const drop = { kind: 'drop', slot: t.slot('s0') } as const;
    expect((await t.change(drop, ...changesOf('on', 0, 1))).changes).toBe(1);
    expect(await read()).toEqual({ activations: new Set(), damaged: [], fields: 0 });
  });

  test('a cleared field is removed', async () => {
    const { t, changesOf, read, named } = await start();
    await t.change(...changesOf('on', 0, 200));
    const clear = ['k', 'k\x002'].map(field => ({ kind: 'clear' as const, field }));
    await t.change(...changesOf('on', 0, 5), ...clear, ...changesOf('on', 3, 6));
    expect(await read()).toEqual({ activations: named([3, 6]), damaged: [], fields: 1 });
  });
});
