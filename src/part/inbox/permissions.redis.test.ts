import { expect, test } from 'vitest';
import { createTestPart, row } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { readPermissions } from './permissions.ts';

onEachRedis(redis => {
  test('a group key is not active for a slot whose name is part of the activation of another slot', async () => {
    const t = createTestPart(redis());
    await t.setUp({ a: {} }, ['k']);
    const activation = (await t.hash('keys'))['k'] as string;
    expect(activation.slice(0, 8)).toBe(t.slot('a'));
    for (let at = 1; at <= activation.length - 8; at++) {
      const slot = activation.slice(at, at + 8);
      await t.change({ kind: 'row', slot, row: row() });
      expect(await readPermissions(t.client, { part: t.part, slot }, ['k'])).toEqual(['INACTIVE']);
    }
    const slot = activation.slice(-8);
    await t.change({ kind: 'on', slot, groupKey: 'k' });
    expect(await readPermissions(t.client, { part: t.part, slot }, ['k', 'l'])).toEqual(['OPEN', 'INACTIVE']);
  });
});
