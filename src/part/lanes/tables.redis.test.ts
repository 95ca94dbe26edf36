import { expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';

const GROUP_KEYS = Array.from({ length: 40 }, (_, i) => `g${i}`);

onEachRedis(redis => {
  test('many lanes are stored in tables, so that Redis finds a lane without reading all of them', async () => {
    const { t, d } = await startPart(redis(), { a: { cap: 64 } }, GROUP_KEYS);
    const encoding = (name: 'lanes' | 'claims') => redis().call('object', 'encoding', t.keys[name]);
    await t.send(...GROUP_KEYS);
    expect(await encoding('lanes')).toBe('hashtable');
    expect(Object.keys(await t.hash('lanes'))).toHaveLength(GROUP_KEYS.length);
    const { claims } = await d.exchange(GROUP_KEYS.length);
    expect(await encoding('claims')).toBe('hashtable');
    expect(Object.keys(await t.hash('claims'))).toEqual(expect.arrayContaining(claims.map(({ lane }) => lane)));
    expect(Object.keys(await t.hash('claims'))).toHaveLength(GROUP_KEYS.length);
    for (const claim of claims) d.end(claim);
    await d.exchange();
    expect(await t.hash('claims')).toEqual({});
  });
});
