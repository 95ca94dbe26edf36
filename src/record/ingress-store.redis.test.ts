import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { CLUSTER_KEYS, tenantKeys } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { createIngressReader } from './ingress-store.ts';

const NOW_MS = 1_800_000_000_000;

onEachRedis(redis => {
  let tenant: string;
  let alarms: string[];
  const check = (sha256: string) =>
    createIngressReader(
      redis(),
      () => NOW_MS,
      slot => alarms.push(slot),
      () => '',
    ).checkKey(tenant, sha256);

  beforeEach(() => {
    tenant = `ten_${randomBytes(8).toString('hex')}`;
    alarms = [];
  });

  describe('an ingress key', () => {
    test('is valid until its time, and forever without one', async () => {
      const { meta, keys } = tenantKeys(tenant);
      await redis().call('hset', meta, 'ready', '1');
      await redis().call('hset', keys, 'endless', '', 'later', NOW_MS + 1, 'over', NOW_MS);
      expect(await Promise.all(['endless', 'later', 'over', 'unknown'].map(check))).toEqual([Infinity, 1, 0, 0]);
      expect(alarms).toEqual([]);
    });

    test('of a workspace that Redis has lost, or may have lost, is not refused', async () => {
      const { meta, keys } = tenantKeys(tenant);
      await redis().call('hset', keys, 'endless', '');
      const ready = (await redis().call('hget', CLUSTER_KEYS.meta, 'ready')) as string | null;
      try {
        await redis().call('hdel', CLUSTER_KEYS.meta, 'ready');
        expect(await check('endless')).toBe('unavailable');
        await redis().call('hset', CLUSTER_KEYS.meta, 'ready', '1');
        expect(await check('endless')).toBe(0);
        await redis().call('sadd', CLUSTER_KEYS.tenants, tenant);
        expect(await check('endless')).toBe('unavailable');
        expect(alarms).toEqual([`t:${tenant}`, `t:${tenant}`]);
      } finally {
        await redis().call('srem', CLUSTER_KEYS.tenants, tenant);
        if (ready === null) await redis().call('hdel', CLUSTER_KEYS.meta, 'ready');
        else await redis().call('hset', CLUSTER_KEYS.meta, 'ready', ready);
      }
      await redis().call('hset', meta, 'ready', '1');
      expect(await check('endless')).toBe(Infinity);
    });
  });
});
