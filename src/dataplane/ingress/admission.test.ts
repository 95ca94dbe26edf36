import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startIngress } from './testing/ingress-harness.ts';
import { QUEUE } from './testing/memory-store.ts';

let role: Awaited<ReturnType<typeof startIngress>>;
beforeEach(async () => {
  role = await startIngress();
});
afterEach(() => role.ingress.close());

describe('keys', () => {
  test.each([
    { authorization: 'Bearer sk_0123456789abcdef', 'x-api-key': '' },
    { authorization: 'bearer  sk_0123456789abcdef', 'x-api-key': '' },
    { authorization: 'Basic eDp5', 'x-api-key': 'sk_0123456789abcdef' },
  ])('%j is accepted', async headers => {
    expect((await role.send({ headers })).status).toBe(202);
  });

  test.each([
    ['none', { 'x-api-key': '' }, 'Bearer realm="sluice"'],
    ['wrong', { 'x-api-key': 'sk_wrong' }, 'Bearer realm="sluice", error="invalid_token"'],
    ['wrong bearer', { authorization: 'Bearer sk_wrong' }, 'Bearer realm="sluice", error="invalid_token"'],
    ['endless', { 'x-api-key': 'x'.repeat(5_000) }, 'Bearer realm="sluice"'],
  ])('%s: 401, regardless of whether the stream exists', async (_, headers, challenge) => {
    for (const queue of ['orders', 'nothing']) {
      const answer = await role.send({ path: `/events/${role.store.tenant}/${queue}`, headers });
      expect(answer).toMatchObject({ status: 401, document: { code: 'unauthenticated' } });
      expect(answer.headers['www-authenticate']).toBe(challenge);
    }
  });

  test('a key of one workspace does not give access to another', async () => {
    expect((await role.send({})).status).toBe(202);
    expect((await role.send({ path: `/events/ten_${'z'.repeat(20)}/orders` })).status).toBe(401);
  });

  test('missing control data results in 503 with Retry-After, never in 401 or 404; a known key works for another 5 s', async () => {
    expect((await role.send({})).status).toBe(202);
    role.store.lost = true;
    role.clock.nowMs += 999;
    expect((await role.send({})).status).toBe(202);
    for (const headers of [{}, { 'x-api-key': 'sk_wrong' }]) {
      role.clock.nowMs += 5_000;
      const answer = await role.send({ headers });
      expect(answer).toMatchObject({ status: 503, document: { code: 'unavailable' } });
      expect(answer.headers['retry-after']).toBe('2');
    }
  });
});

test('a removed key is refused after 5 s, even if the wall clock was set back', async () => {
  expect((await role.send({})).status).toBe(202);
  role.store.checkKey = async () => 0;
  role.clock.wallSetBackMs = 3_600_000;
  role.clock.nowMs += 4_999;
  expect((await role.send({})).status).toBe(202);
  role.clock.nowMs += 1;
  expect((await role.send({})).status).toBe(401);
});

describe('while the store does not respond, requests that wait for the read of another are refused with it', () => {
  const repeated = (status: number) => Array.from({ length: 5 }, () => status);
  const statuses = async (headers: Record<string, string> = {}) =>
    (await Promise.all(repeated(0).map(() => role.send({ headers })))).map(({ status }) => status);

  beforeEach(async () => {
    await role.ingress.close();
    role = await startIngress({ ingestTimeoutMs: 500 });
  });

  test('to look up its key', async () => {
    role.store.holdLookups = new Promise(() => {});
    expect([await statuses(), role.store.lookups]).toEqual([repeated(503), 1]);
    role.store.holdLookups = undefined;
    expect(await statuses()).toContain(202);
    expect(await statuses()).toEqual(repeated(202));
  });

  test('to read the limit of its account', async () => {
    role.store.queues.set('orders', { ...QUEUE, payer: 'acc_a', eventsPerSecond: 1_000 });
    await role.send({});
    role.clock.nowMs += 1_000;
    const { readQueue } = role.store;
    const reading = vi.spyOn(role.store, 'readQueue').mockReturnValue(new Promise(() => {}));
    expect([await statuses(), reading.mock.calls.length]).toEqual([repeated(503), 1]);
    reading.mockImplementation(readQueue);
    expect(await statuses()).toContain(202);
    expect(await statuses()).toEqual(repeated(202));
  });
});

describe('the path', () => {
  test.each([
    ['/events/ten_short/orders', 404],
    ['/events/TEN_01234567890123456789/orders', 404],
    ['/events/sandbox/orders', 404],
    ['/events/{t}/Orders', 404],
    ['/events/{t}/a%2fb', 404],
    ['/events/{t}/orders;x=1', 404],
    ['/events/{t}/orders/', 404],
    ['/events/{t}//orders', 404],
    ['//events/{t}/orders', 404],
    ['/EVENTS/{t}/orders', 404],
    ['/events/{t}/orders%00', 404],
    ['/events/{t}/..%2forders', 404],
    ['/events/{t}/nothing', 404],
    ['/events/{t}/%zz', 400],
    ['/events/{t}/%ff', 400],
    [`/events/{t}/${'a'.repeat(64)}`, 404],
    [`/events/{t}/${'a'.repeat(200)}`, 414],
    ['/', 404],
    ['/waas/streams', 404],
    ['/events/{t}/%6frders', 202],
    ['/events/{t}/orders?x=1', 202],
  ])('%s: %i', async (path, status) => {
    expect((await role.send({ path: path.replace('{t}', role.store.tenant) })).status).toBe(status);
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'] as const)(
    '%s: 405 with Allow',
    async method => {
      const answer = await role.send({ method });
      expect(answer.status).toBe(405);
      expect(answer.headers.allow).toBe('POST');
      expect((await role.send({ method, path: '/nowhere' })).status).toBe(404);
    },
  );

  test('the root contains the path of events, and the role that serves /docs', async () => {
    const { status, document } = await role.send({ method: 'GET', path: '/' });
    expect(status).toBe(404);
    expect(String((document as { detail?: unknown }).detail)).toMatch(/POST \/events\/.*facade.*\/docs/);
  });

  test.each(['', '&runId=x'])(
    'more than 64 parameters%s: 400 before the key is checked, and nothing is stored',
    async last => {
      const many = Array.from({ length: 65 }, (_, n) => `p${n}=1`).join('&');
      const path = `/events/${role.store.tenant}/orders?${many}${last}`;
      const refused = { status: 400, document: { code: 'malformed_request', detail: expect.stringContaining('64') } };
      expect(await role.send({ path })).toMatchObject(refused);
      expect(await role.send({ path, headers: { 'x-api-key': 'wrong' } })).toMatchObject(refused);
      expect(role.store.stored).toEqual([]);
    },
  );

  test.each(['sb_fail_code=500', 'sb_fail_count=', 'runId', 'a=1&run%49d=x', '%73b_fail_code=1'])(
    'sandbox parameter %s: 400 before the key is checked, and nothing is stored',
    async query => {
      const path = `/events/${role.store.tenant}/orders?${query}`;
      expect(await role.send({ path })).toMatchObject({ status: 400, document: { code: 'sandbox_parameter' } });
      expect((await role.send({ path, headers: { 'x-api-key': 'wrong' } })).status).toBe(400);
      expect(role.store.stored).toEqual([]);
    },
  );
});
