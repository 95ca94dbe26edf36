import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { accountKeys, CLUSTER_KEYS } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { FencedError } from './control-store.ts';
import { createMailReader, MAIL_PERIOD_MS, MAIL_SERVER_FIELD } from './mail-reader.ts';
import { createMailRecord } from './mail-record.ts';

const START_MS = Date.parse('2026-05-01T00:00:00Z');

onEachRedis(redis => {
  function start(most: number | null = 3) {
    const account = `acc_${randomUUID()}`;
    const clock = { nowMs: START_MS };
    const record = createMailRecord(redis());
    const reader = createMailReader(redis());
    const mail = (address: string) => ({ account, address, most: most ?? undefined, nowMs: clock.nowMs });
    return {
      clock,
      keys: accountKeys(account),
      reserve: (address: string, uid: string, fence = 1) => record.reserve(fence, mail(address), uid),
      release: (address: string, uid: string, fence = 1) => record.release(fence, mail(address), uid),
      look: (address: string) => reader.holdOf(mail(address)),
      count: () => reader.countOf(account, clock.nowMs),
    };
  }

  test('an address receives one email in 24 hours, even from different Integrations', async () => {
    const { clock, reserve, look } = start();
    expect(await reserve('ada', 'uid-1')).toBeUndefined();
    const hold = { by: 'address', untilMs: START_MS + MAIL_PERIOD_MS };
    expect(await reserve('ada', 'uid-2')).toEqual(hold);
    expect(await look('ada')).toEqual(hold);
    expect(await look('eve')).toBeUndefined();
    clock.nowMs += MAIL_PERIOD_MS - 1;
    expect(await reserve('ada', 'uid-2')).toEqual(hold);
    clock.nowMs += 1;
    expect(await look('ada')).toBeUndefined();
    expect(await reserve('ada', 'uid-2')).toBeUndefined();
    expect(await reserve('ada', 'uid-1')).toMatchObject({ by: 'address' });
  });

  test('another attempt for the same email is not counted again, and updates the time', async () => {
    const { clock, reserve } = start(1);
    await reserve('ada', 'uid-1');
    clock.nowMs += 1_000;
    expect(await reserve('ada', 'uid-1')).toBeUndefined();
    expect(await reserve('ada', 'uid-2')).toEqual({ by: 'address', untilMs: START_MS + 1_000 + MAIL_PERIOD_MS });
    expect(await reserve('eve', 'uid-3')).toEqual({ by: 'account', untilMs: START_MS + 1_000 + MAIL_PERIOD_MS });
  });

  test('an account can send a limited number in 24 hours, and the next one as soon as the oldest has expired', async () => {
    const { clock, reserve, look, count } = start(3);
    for (const [n, address] of ['a', 'b', 'c'].entries()) {
      expect(await count()).toBe(n);
      expect(await reserve(address, address)).toBeUndefined();
      clock.nowMs += 60_000;
    }
    const hold = { by: 'account', untilMs: START_MS + MAIL_PERIOD_MS };
    expect(await reserve('d', 'd')).toEqual(hold);
    expect(await look('d')).toEqual(hold);
    expect(await count()).toBe(3);
    clock.nowMs = START_MS + MAIL_PERIOD_MS;
    expect(await count()).toBe(2);
    expect(await look('d')).toBeUndefined();
    expect(await reserve('d', 'd')).toBeUndefined();
    expect(await reserve('e', 'e')).toEqual({ by: 'account', untilMs: START_MS + 60_000 + MAIL_PERIOD_MS });
  });

  test('a lowered limit waits until enough emails have expired, and none are sent if it is 0', async () => {
    const { clock, keys, reserve } = start(null);
    for (const address of ['a', 'b', 'c', 'd']) {
      expect(await reserve(address, address)).toBeUndefined();
      clock.nowMs += 60_000;
    }
    const record = createMailRecord(redis());
    const account = /\{a:(.*)\}/.exec(keys.mails)?.[1] as string;
    const mail = { account, address: 'e', nowMs: clock.nowMs };
    expect(await record.reserve(1, { ...mail, most: 2 }, 'e')).toEqual({
      by: 'account',
      untilMs: START_MS + 2 * 60_000 + MAIL_PERIOD_MS,
    });
    const none = { by: 'account', untilMs: clock.nowMs + MAIL_PERIOD_MS };
    expect(await record.reserve(1, { ...mail, most: 0 }, 'e')).toEqual(none);
    expect(await createMailReader(redis()).holdOf({ ...mail, most: 0 })).toEqual(none);
  });

  test('an email that was not sent is returned to the limit, and emails of others are not', async () => {
    const { reserve, release, look } = start(1);
    expect(await reserve('ada', 'uid-1')).toBeUndefined();
    await release('ada', 'uid-2');
    expect(await look('ada')).toMatchObject({ by: 'address' });
    await release('ada', 'uid-1');
    expect([await look('ada'), await look('eve')]).toEqual([undefined, undefined]);
    expect(await reserve('eve', 'uid-3')).toBeUndefined();
    await expect(release('eve', 'uid-3', 0)).rejects.toThrow(FencedError);
    expect(await look('eve')).toMatchObject({ by: 'address' });
  });

  test('an email that an earlier attempt may have sent is not returned to the limit', async () => {
    const { reserve, release, look } = start();
    await reserve('ada', 'uid-1');
    expect(await reserve('ada', 'uid-1')).toBeUndefined();
    await release('ada', 'uid-1');
    expect(await look('ada')).toMatchObject({ by: 'address' });
    expect(await reserve('ada', 'uid-1')).toBeUndefined();
    expect(await reserve('ada', 'uid-2')).toMatchObject({ by: 'address' });
  });

  test('no invitation waits for an email that is not sent by a server', async () => {
    const { reserve, look } = start(0);
    const hold = { by: 'account', untilMs: START_MS + MAIL_PERIOD_MS };
    expect([await look('ada'), await reserve('ada', 'uid-1')]).toEqual([hold, hold]);
    await redis().call('hset', CLUSTER_KEYS.meta, MAIL_SERVER_FIELD, '0');
    expect(await look('ada')).toBeUndefined();
    await redis().call('hset', CLUSTER_KEYS.meta, MAIL_SERVER_FIELD, '1');
    expect(await look('ada')).toEqual(hold);
  });

  test('a deposed leader does not send anything', async () => {
    const { reserve } = start();
    await reserve('ada', 'uid-1', 2);
    await expect(reserve('eve', 'uid-2', 1)).rejects.toThrow(FencedError);
    expect(await reserve('eve', 'uid-3', 2)).toBeUndefined();
  });

  test('the record expires after 24 hours, and its size does not grow over time', async () => {
    const { clock, keys, reserve } = start(null);
    for (let n = 0; n < 50; n++) {
      await reserve(`a${n}`, 'uid');
      clock.nowMs += MAIL_PERIOD_MS / 10;
    }
    expect(await redis().call('zcard', keys.mails)).toBe(10);
    expect(await redis().call('hlen', keys.mailed)).toBe(10);
    for (const key of [keys.mails, keys.mailed]) {
      const ttlMs = Number(await redis().call('pttl', key));
      expect(ttlMs).toBeGreaterThan(MAIL_PERIOD_MS - 60_000);
      expect(ttlMs).toBeLessThanOrEqual(MAIL_PERIOD_MS);
    }
  });
});
