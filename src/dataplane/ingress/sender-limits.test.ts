import { afterEach, describe, expect, test } from 'vitest';
import type { SenderRates } from './sender-limits.ts';
import { startIngress } from './testing/ingress-harness.ts';
import { QUEUE } from './testing/memory-store.ts';

let role: Awaited<ReturnType<typeof startIngress>>;
afterEach(() => role.ingress.close());

/** Starts an ingress with two keys, `role.store.key` and `other`. */
async function start(rates: Partial<SenderRates>): Promise<void> {
  role = await startIngress({}, undefined, rates);
  role.store.keys.add(OTHER);
}

const OTHER = 'sk_other';
const HERE = '203.0.113.9';
const THERE = '203.0.113.10';

const send = (key = role.store.key, address = HERE) =>
  role.send({ headers: { 'x-api-key': key, 'x-forwarded-for': `198.51.100.1, ${address}` } });
const statusOf = async (key?: string, address?: string) => (await send(key, address)).status;

/** Returns the statuses of `count` sequential requests. */
async function statuses(count: number, key: (n: number) => string, address?: string): Promise<number[]> {
  const got: number[] = [];
  for (let n = 0; n < count; n++) got.push(await statusOf(key(n), address));
  return got;
}
const repeated = (status: number, count: number) => Array.from({ length: count }, () => status);

describe('a limit of events per second', () => {
  test('for a key only refuses events of this key', async () => {
    await start({ perKey: 3 });
    expect(await statuses(3, () => role.store.key)).toEqual([202, 202, 202]);
    const refused = await send();
    expect(refused).toMatchObject({
      status: 429,
      document: {
        code: 'rate_limited',
        detail: expect.stringContaining('The request costs 1 of the 3 points that the key has in 1 s, and 0 are left.'),
      },
      headers: { 'ratelimit-policy': '"key";q=3;w=1', ratelimit: '"key";r=0;t=1', 'retry-after': '1' },
    });
    expect(await statusOf(OTHER)).toBe(202);
    expect(role.store.stored).toHaveLength(4);
    role.clock.nowMs += 333;
    expect(await statusOf()).toBe(429);
    role.clock.nowMs += 1;
    expect(await statuses(2, () => role.store.key)).toEqual([202, 429]);
    expect(await role.registry.metrics()).toContain('sluice_ingress_limited_total{limit="key"} 3');
  });

  test('for a key refuses the key without looking it up again', async () => {
    await start({ perKey: 1 });
    expect(await statuses(50, () => role.store.key)).toEqual([202, ...repeated(429, 49)]);
    expect(role.store.lookups).toBe(1);
  });

  test('for a workspace is shared by its keys', async () => {
    await start({ perWorkspace: 3 });
    expect(await statuses(4, n => (n % 2 === 0 ? role.store.key : OTHER))).toEqual([202, 202, 202, 429]);
    expect((await send()).headers).toMatchObject({ 'ratelimit-policy': '"workspace";q=3;w=1', 'retry-after': '1' });
    expect(await statuses(9, n => `wrong-${n}`)).toEqual(repeated(401, 9));
    role.clock.nowMs += 1_000;
    expect(await statuses(4, n => (n % 2 === 0 ? role.store.key : OTHER))).toEqual([202, 202, 202, 429]);
  });

  describe('the limit of an account', () => {
    const limitTo = (eventsPerSecond?: number, payer = 'acc_a') => {
      role.store.queues.set('orders', { ...QUEUE, payer, eventsPerSecond });
      role.clock.nowMs += 1_000;
    };

    test('is shared by its keys and streams, but not with other accounts', async () => {
      await start({});
      limitTo(3);
      role.store.queues.set('invoices', { ...QUEUE, payer: 'acc_a', eventsPerSecond: 3 });
      role.store.queues.set('theirs', { ...QUEUE, payer: 'acc_b', eventsPerSecond: 3 });
      const sendTo = (queue: string) => role.send({ path: `/events/${role.store.tenant}/${queue}` });
      expect(await statuses(2, n => (n === 0 ? role.store.key : OTHER))).toEqual([202, 202]);
      expect((await sendTo('invoices')).status).toBe(202);
      const refused = await sendTo('invoices');
      expect(refused).toMatchObject({
        status: 429,
        document: { code: 'rate_limited', detail: expect.stringContaining('the 3 points that the account has in 1 s') },
        headers: { 'ratelimit-policy': '"account";q=3;w=1', 'retry-after': '1' },
      });
      expect(await statusOf()).toBe(429);
      expect((await sendTo('theirs')).status).toBe(202);
      expect(await role.registry.metrics()).toContain('sluice_ingress_limited_total{limit="account"} 2');
      role.clock.nowMs += 1_000;
      expect(await statuses(4, () => role.store.key)).toEqual([202, 202, 202, 429]);
    });

    test('is updated when it is read', async () => {
      await start({});
      limitTo(2);
      expect(await statuses(3, () => role.store.key)).toEqual([202, 202, 429]);
      limitTo(4);
      expect(await statuses(5, () => role.store.key)).toEqual([202, 202, 202, 202, 429]);
      limitTo(undefined);
      expect(await statuses(20, () => role.store.key)).toEqual(repeated(202, 20));
    });

    test('is reported with its usage, and who can raise it', async () => {
      await start({});
      limitTo(3);
      await statuses(3, () => role.store.key);
      expect((await send()).document).toMatchObject({
        detail:
          'The request costs 1 of the 3 points that the account has in 1 s, and 0 are left. Wait for the number of seconds in Retry-After and then retry. Ask the operator of this Sluice to raise eventsPerSecond for account acc_a.',
      });
    });

    test('refuses everything if it is 0', async () => {
      await start({});
      limitTo(0);
      const refused = { status: 429, document: { code: 'rate_limited' }, headers: { 'retry-after': '60' } };
      expect(await send()).toMatchObject(refused);
      role.clock.nowMs += 60_000;
      expect((await send()).document).toMatchObject({
        detail:
          'The limit eventsPerSecond of account acc_a is 0. Ask the operator of this Sluice to raise eventsPerSecond for account acc_a.',
      });
      expect(role.store.stored).toEqual([]);
    });
  });

  test('for an address only refuses events of this address', async () => {
    await start({ perAddress: 3 });
    expect(await statuses(4, () => role.store.key)).toEqual([202, 202, 202, 429]);
    expect((await send(OTHER)).headers).toMatchObject({ 'ratelimit-policy': '"address";q=3;w=1', 'retry-after': '1' });
    expect(await statuses(3, () => role.store.key, THERE)).toEqual([202, 202, 202]);
    expect(await role.registry.metrics()).toContain('sluice_ingress_limited_total{limit="address"} 2');
  });

  test('for an address includes requests without a key', async () => {
    await start({ perAddress: 3 });
    expect(await statuses(4, () => '')).toEqual([401, 401, 401, 429]);
  });
});

describe('a wrong key', () => {
  test('is looked up at most once per second', async () => {
    await start({});
    expect(await statuses(50, () => 'wrong')).toEqual(repeated(401, 50));
    expect(await statuses(50, () => 'wrong', THERE)).toEqual(repeated(401, 50));
    expect(role.store.lookups).toBe(1);
    role.clock.nowMs += 999;
    expect(await statusOf('wrong')).toBe(401);
    expect(role.store.lookups).toBe(1);
    role.clock.nowMs += 1;
    expect(await statusOf('wrong')).toBe(401);
    expect(role.store.lookups).toBe(2);
  });

  test('is accepted after a second if it was used before, or else immediately', async () => {
    await start({});
    expect(await statusOf('early')).toBe(401);
    role.store.keys.add('early').add('late');
    expect(await statusOf('late')).toBe(202);
    expect(await statusOf('early')).toBe(401);
    role.clock.nowMs += 1_000;
    expect(await statusOf('early')).toBe(202);
  });

  test('is not remembered if the store does not know', async () => {
    await start({});
    role.store.lost = true;
    expect(await statusOf()).toBe(503);
    role.store.lost = false;
    expect(await statusOf()).toBe(202);
  });
});

describe('many wrong keys from an address', () => {
  test('are looked up for 1 % of its limit, while known keys from the same address are still accepted', async () => {
    await start({ perAddress: 1_000 });
    expect(await statusOf()).toBe(202);
    const got = await statuses(50, n => `wrong-${n}`);
    expect(got).toEqual([...repeated(401, 9), ...repeated(429, 41)]);
    expect(role.store.lookups).toBe(1 + 9);
    expect(await statuses(50, () => role.store.key)).toEqual(repeated(202, 50));
    expect(await statusOf(OTHER)).toBe(429);
    expect((await send('wrong-99')).headers).toMatchObject({ 'ratelimit-policy': '"address";q=1000;w=1' });
    expect(await statusOf(OTHER, THERE)).toBe(202);
    role.clock.nowMs += 100;
    expect(await statusOf(OTHER)).toBe(202);
  });

  test('are limited in the same way if they are sent concurrently', async () => {
    await start({ perAddress: 1_000 });
    const got = await Promise.all(Array.from({ length: 200 }, (_, n) => statusOf(`wrong-${n}`)));
    expect(got.filter(status => status === 401)).toHaveLength(10);
    expect(role.store.lookups).toBe(10);
  });
});

describe('lookups are free', () => {
  test('for valid keys, one after the other and concurrently', async () => {
    await start({ perAddress: 200 });
    const keys = Array.from({ length: 50 }, (_, n) => `valid-${n}`);
    for (const key of keys) role.store.keys.add(key);
    expect(await statuses(50, n => keys[n] ?? '')).toEqual(repeated(202, 50));
    expect(await statuses(151, () => OTHER)).toEqual([...repeated(202, 150), 429]);
  });

  test('for all requests that wait for the same lookup', async () => {
    await start({ perAddress: 200 });
    const gate = Promise.withResolvers<void>();
    role.store.holdLookups = gate.promise;
    let arrived = 0;
    role.ingress.app.server.on('request', () => {
      arrived += 1;
      if (arrived === 100) setImmediate(gate.resolve);
    });
    expect(await Promise.all(Array.from({ length: 100 }, () => statusOf()))).toEqual(repeated(202, 100));
    expect(await statuses(101, () => role.store.key)).toEqual([...repeated(202, 100), 429]);
  });

  test('if the store does not know', async () => {
    await start({ perAddress: 200 });
    role.store.lost = true;
    expect(await statuses(50, n => `key-${n}`)).toEqual(repeated(503, 50));
  });
});

describe('an event costs a point of each limit for each started 16 KiB', () => {
  const KIB = 1_024;
  const sizes = [
    [0, 1],
    [16 * KIB, 1],
    [16 * KIB + 1, 2],
    [256 * KIB, 16],
  ] as const;
  const sendBytes = async (bytes: number, key = role.store.key) =>
    role.send({ body: Buffer.alloc(bytes, '1'), headers: { 'x-api-key': key, 'x-forwarded-for': HERE } });
  /** Sends a body without specifying its size. */
  const stream = async (bytes: number, key = role.store.key) => {
    const answer = await fetch(`http://127.0.0.1:${role.port}/events/${role.store.tenant}/orders`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'x-forwarded-for': HERE },
      body: new ReadableStream({
        start(controller) {
          if (bytes > 0) controller.enqueue(Buffer.alloc(bytes, '1'));
          controller.close();
        },
      }),
      duplex: 'half',
    } as RequestInit);
    await answer.text();
    return answer;
  };

  const limits = ['perAddress', 'perKey', 'perWorkspace', 'account'] as const;
  test.each(limits.flatMap(limit => sizes.map(([bytes, points]) => [limit, bytes, points] as const)))(
    '%s: %i bytes cost %i points',
    async (limit, bytes, points) => {
      await start(limit === 'account' ? {} : { [limit]: 20 });
      if (limit === 'account') role.store.queues.set('orders', { ...QUEUE, payer: 'acc_a', eventsPerSecond: 20 });
      for (const sent of [sendBytes, stream]) {
        role.clock.nowMs += 1_000;
        // Remembers the key, so that its lookup does not cost anything.
        expect(await statusOf()).toBe(202);
        role.clock.nowMs += 1_000;
        expect((await sent(bytes)).status).toBe(202);
        expect(await statuses(21 - points, () => role.store.key)).toEqual([...repeated(202, 20 - points), 429]);
      }
    },
  );

  test('and is refused before its body is read if there are not enough points', async () => {
    await start({ perKey: 20 });
    expect(await statuses(5, () => role.store.key)).toEqual(repeated(202, 5));
    const refused = await sendBytes(256 * KIB);
    expect(refused).toMatchObject({
      status: 429,
      document: { detail: expect.stringContaining('The request costs 16 of the 20 points that the key has in 1 s') },
    });
    expect(await sendBytes(240 * KIB)).toMatchObject({ status: 202 });
    expect((await stream(256 * KIB)).status).toBe(429);
    expect(role.store.stored).toHaveLength(6);
  });

  test.each(limits)(
    '%s: above the limit, it costs all of its points, with or without a specified size',
    async limit => {
      await start(limit === 'account' ? {} : { [limit]: 10 });
      if (limit === 'account') role.store.queues.set('orders', { ...QUEUE, payer: 'acc_a', eventsPerSecond: 10 });
      for (const sent of [sendBytes, stream]) {
        role.clock.nowMs += 1_000;
        expect(await statusOf()).toBe(202);
        role.clock.nowMs += 99;
        expect((await sent(200 * KIB)).status).toBe(429);
        role.clock.nowMs += 1_000;
        expect((await sent(200 * KIB)).status).toBe(202);
        expect(await statusOf()).toBe(429);
      }
    },
  );

  test('but a body that is too large costs one point', async () => {
    await start({ perKey: 20 });
    expect(await sendBytes(256 * KIB + 1)).toMatchObject({ status: 413 });
    expect(await statuses(20, () => role.store.key)).toEqual([...repeated(202, 19), 429]);
  });

  test('even if its key is looked up', async () => {
    await start({ perAddress: 200 });
    expect(await sendBytes(256 * KIB)).toMatchObject({ status: 202 });
    expect(await statuses(185, () => role.store.key)).toEqual([...repeated(202, 184), 429]);
  });
});
