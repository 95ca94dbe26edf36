import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startIngress } from './testing/ingress-harness.ts';
import { QUEUE } from './testing/memory-store.ts';

let role: Awaited<ReturnType<typeof startIngress>>;
beforeEach(async () => {
  role = await startIngress();
});
afterEach(() => role.ingress.close());

describe('an event', () => {
  test('is stored unchanged, and the response contains its id', async () => {
    const body = Buffer.from([0, 255, 10, 13, 123]);
    const headers = {
      'content-type': 'application/x-thing',
      'webhook-id': 'm "1"',
      'x-sluice-event-type': 'order.created',
      'x-sluice-group-key': 'shop-1',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    };
    const answer = await role.send({ headers, body });
    expect(answer).toMatchObject({ status: 202, document: { id: 'm "1"', duplicate: false, groupKey: 'shop-1' } });
    expect(role.store.stored).toEqual([
      {
        id: 'm "1"',
        type: 'order.created',
        groupKey: 'shop-1',
        contentType: 'application/x-thing',
        traceparent: headers.traceparent,
        forward: {},
        body,
      },
    ]);
    expect(await role.send({ headers, body })).toMatchObject({
      status: 202,
      document: { id: 'm "1"', duplicate: true },
    });
    expect(role.store.stored).toHaveLength(1);
  });

  test.each(['application/json', 'garbage', '', 'text/plain; charset=nonsense', 'multipart/form-data', 'a/b/c;;;'])(
    'with content type %j is not parsed',
    async contentType => {
      const answer = await role.send({ headers: { 'content-type': contentType }, body: '{"no json' });
      expect(answer.status).toBe(202);
      expect(role.store.stored[0]?.body.toString()).toBe('{"no json');
    },
  );

  test.each(['gzip', 'BR', 'zstd', 'identity, gzip'])('with Content-Encoding: %s results in 415', async coding => {
    const answer = await role.send({ headers: { 'content-encoding': coding }, body: gzipSync('{}') });
    expect(answer).toMatchObject({
      status: 415,
      headers: { 'accept-encoding': 'identity' },
      document: { code: 'unsupported_media_type', detail: expect.stringContaining('Content-Encoding') },
    });
    expect((await role.send({ headers: { 'content-encoding': coding, 'x-api-key': 'wrong' } })).status).toBe(401);
    expect(role.store.stored).toEqual([]);
  });

  test.each(['identity', ' Identity ', ''])('with Content-Encoding: %j is stored', async coding => {
    expect((await role.send({ headers: { 'content-encoding': coding }, body: '{}' })).status).toBe(202);
    expect(role.store.stored).toHaveLength(1);
  });

  test('can be empty, with or without a content type, and receives an id', async () => {
    const first = await role.send({});
    const second = await role.send({ headers: { 'content-type': 'application/json' } });
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(first.document.id).toMatch(/^evt_[0-9a-hjkmnp-tv-z]{26}$/);
    expect(role.store.stored.map(item => item.body.length)).toEqual([0, 0]);
  });

  test('can have 262,144 bytes, and one more byte results in 413 without storing anything', async () => {
    const body = Buffer.alloc(256 * 1024, 'x');
    expect((await role.send({ body })).status).toBe(202);
    expect(role.store.stored[0]?.body.equals(body)).toBe(true);
    const more = Buffer.alloc(256 * 1024 + 1);
    expect(await role.send({ body: more })).toMatchObject({ status: 413, document: { code: 'body_too_large' } });
    const chunked = await fetch(`http://127.0.0.1:${role.port}/events/${role.store.tenant}/orders`, {
      method: 'POST',
      headers: { 'x-api-key': role.store.key },
      body: new Blob([more]).stream(),
      duplex: 'half',
    });
    expect(chunked.status).toBe(413);
    await chunked.body?.cancel();
    expect((await role.send({ body: Buffer.alloc(8 * 1024 * 1024) })).status).toBe(413);
    expect(role.store.stored).toHaveLength(1);
  });
});

describe('a configuration', () => {
  test('is not read for events that are stored, at any rate', async () => {
    let reads = 0;
    const { readQueue } = role.store;
    role.store.readQueue = (...of) => {
      reads++;
      return readQueue(...of);
    };
    for (let i = 0; i < 10; i++) {
      expect((await role.send({})).status).toBe(202);
      role.clock.nowMs += 30_000;
    }
    expect(reads).toBe(1);
  });

  test('is known with a new limit of its account once an event is stored', async () => {
    expect((await role.send({})).status).toBe(202);
    role.store.queues.set('orders', { ...QUEUE, payer: 'acc_a', eventsPerSecond: 0 });
    role.clock.nowMs += 30_000;
    expect((await role.send({})).status).toBe(202);
    expect((await role.send({})).status).toBe(429);
    role.store.queues.set('orders', { ...QUEUE, payer: 'acc_a', eventsPerSecond: 5 });
    expect((await role.send({})).status).toBe(429);
    role.clock.nowMs += 1_000;
    expect((await role.send({})).status).toBe(202);
  });
});

describe('a changed configuration', () => {
  test('is used immediately: for a new type, a new header, and a new stream', async () => {
    role.store.queues.set('orders', { ...QUEUE, eventTypes: ['a'] });
    expect((await role.send({ headers: { 'ce-type': 'a' } })).status).toBe(202);
    expect(await role.send({ headers: { 'ce-type': 'b' } })).toMatchObject({
      status: 422,
      document: { code: 'unknown_event_type' },
    });
    role.store.queues.set('orders', { ...QUEUE, cfgv: '2', eventTypes: ['b'] });
    expect((await role.send({ headers: { 'ce-type': 'b' } })).status).toBe(202);
    role.store.queues.set('orders', {
      ...QUEUE,
      cfgv: '3',
      contextHeaders: { ...QUEUE.contextHeaders, groupKey: ['x-shop'] },
    });
    expect((await role.send({ headers: { 'x-shop': '7', 'ce-type': 'z' } })).status).toBe(202);
    expect(role.store.stored.at(-1)).toMatchObject({ groupKey: '7' });
    const path = `/events/${role.store.tenant}/later`;
    expect((await role.send({ path })).status).toBe(404);
    role.store.queues.set('later', QUEUE);
    expect((await role.send({ path })).status).toBe(202);
  });

  test('closing results in 409, deleted in 404, and recreated in 202, all of them immediately', async () => {
    expect((await role.send({})).status).toBe(202);
    role.store.queues.set('orders', { ...QUEUE, state: 'closing' });
    expect(await role.send({})).toMatchObject({ status: 409, document: { code: 'stream_closing' } });
    role.store.queues.set('orders', { ...QUEUE, gen: 'g2' });
    expect((await role.send({})).status).toBe(202);
    role.store.queues.delete('orders');
    expect(await role.send({})).toMatchObject({ status: 404, document: { code: 'unknown_queue' } });
  });

  test('that never settles results in 503 after two calls to the store', async () => {
    role.store.answer = 'STALE';
    expect((await role.send({})).status).toBe(503);
    expect(role.store.calls).toEqual([1, 1]);
  });
});

describe('a store that does not accept events', () => {
  test.each([
    ['FULL', 429, 'queue_full'],
    ['LIMIT', 429, 'storage_limit'],
    ['UNAVAILABLE', 503, 'unavailable'],
    ['GONE', 404, 'unknown_queue'],
    ['CLOSED', 409, 'stream_closing'],
    [new Error('reply lost'), 503, 'unavailable'],
  ] as const)('%s: %i %s', async (answer, status, code) => {
    role.store.answer = answer;
    const got = await role.send({});
    expect(got).toMatchObject({ status, document: { code } });
    expect(got.headers['retry-after'] !== undefined).toBe(status === 429 || status === 503);
  });

  test('LIMIT: the detail contains the limit, its usage, and who can raise it', async () => {
    role.store.queues.set('orders', { ...QUEUE, payer: 'acc_a' });
    const use = { limitBytes: 5_000, usedBytes: 4_900, neededBytes: 300 };
    role.store.answer = { answer: 'LIMIT', use };
    const { document } = await role.send({});
    expect(document.detail).toMatch(
      /^The limit of account acc_a is 5000 bytes, and 4900 are in use or reserved by its streams; this event needs 300\. /,
    );
    expect(document.detail).toContain('Ask the operator of this Sluice to raise storedBytes for this account.');
    role.store.answer = { answer: 'LIMIT', use: { ...use, usedBytes: undefined } };
    const { document: unknown } = await role.send({});
    expect(unknown.detail).toMatch(/^The limit of account acc_a is 5000 bytes; this event needs 300\. /);
  });

  test('without a response results in 503 in time', async () => {
    await role.ingress.close();
    role = await startIngress({ ingestTimeoutMs: 20 });
    role.store.hold = new Promise(() => {});
    expect((await role.send({})).status).toBe(503);
    role.store.hold = undefined;
    role.store.checkKey = () => new Promise(() => {});
    role.clock.nowMs += 5_000;
    expect((await role.send({})).status).toBe(503);
  });

  test('is logged with its stack once a minute, and otherwise with its message every ten seconds', async () => {
    const { store, clock, send, logged } = role;
    store.answer = new Error('connect ECONNREFUSED');
    for (let second = 0; second < 120; second++) {
      expect((await send({ body: 'x' })).status).toBe(503);
      clock.nowMs += 1_000;
    }
    const failures = logged.filter(({ msg }) => msg === 'store operation failed');
    expect(failures.filter(line => 'err' in line)).toMatchObject([
      { operation: 'ingest', err: { stack: expect.stringContaining('ECONNREFUSED') } },
      { operation: 'ingest' },
    ]);
    const repeats = failures.filter(line => !('err' in line));
    expect(repeats).toHaveLength(12);
    expect(repeats[2]).toMatchObject({ operation: 'ingest', detail: 'Error: connect ECONNREFUSED', suppressed: 9 });
  });

  test('limits its memory, returns 503 beyond it, and releases all of it', async () => {
    await role.ingress.close();
    role = await startIngress({ heldBytes: 200_000 });
    const gate = Promise.withResolvers<void>();
    role.store.hold = gate.promise;
    const body = Buffer.alloc(20_000);
    const answers = Promise.all(
      Array.from({ length: 12 }, () =>
        role.send({ body }).then(answer => {
          if (answer.status === 503) {
            gate.resolve();
          }
          return answer.status;
        }),
      ),
    );
    const statuses = await answers;
    expect(statuses.filter(status => status === 202).length).toBeGreaterThanOrEqual(4);
    expect(statuses).toContain(503);
    for (let round = 0; round < 10; round++) expect((await role.send({ body: Buffer.alloc(90_000) })).status).toBe(202);
  });
});

test('invalid context results in 422 with the name of the header, and without its value', async () => {
  const answer = await role.send({ headers: { 'webhook-id': 'x'.repeat(300) } });
  expect(answer).toMatchObject({
    status: 422,
    document: { code: 'invalid_context', errors: [{ header: 'webhook-id', detail: 'is longer than 256 characters' }] },
  });
});

test('500 concurrent events are each stored once under their own id', async () => {
  const ids = Array.from({ length: 500 }, (_, index) => `id-${index}`);
  const answers = await Promise.all(ids.map(id => role.send({ headers: { 'webhook-id': id }, body: `body of ${id}` })));
  expect(answers.map(answer => answer.document.id)).toEqual(ids);
  expect(role.store.stored.every(item => item.body.toString() === `body of ${item.id}`)).toBe(true);
  expect(role.store.stored).toHaveLength(500);
  expect(Math.max(...role.store.calls)).toBeLessThanOrEqual(64);
});

test('requests and events are counted', async () => {
  await role.send({ headers: { 'webhook-id': 'a', 'ce-partitionkey': 'k' } });
  await role.send({ headers: { 'webhook-id': 'a' } });
  await role.send({});
  await role.send({ headers: { 'x-api-key': 'wrong' } });
  const text = await role.registry.metrics();
  expect(text).toContain('sluice_ingress_requests_total{code="202"} 3');
  expect(text).toContain('sluice_ingress_requests_total{code="401"} 1');
  expect(text).toContain('sluice_ingress_events_total{result="accepted"} 1');
  expect(text).toContain('sluice_ingress_events_total{result="duplicate"} 1');
  expect(text).toContain('sluice_ingress_events_total{result="missing_group_key"} 1');
  expect(text).toContain('sluice_ingress_request_duration_seconds_count 4');
  expect(await role.registry.metrics()).toContain('sluice_ingress_requests_total{code="202"} 3');
});

test('finishes work in progress when closing, refuses new connections, and waits for the store', async () => {
  const gate = Promise.withResolvers<void>();
  role.store.hold = gate.promise;
  const inProgress = role.send({ body: 'kept' });
  while (role.store.calls.length === 0) await turn();
  const closed = role.ingress.close();
  await expect(fetch(`http://127.0.0.1:${role.port}/`)).rejects.toThrow('fetch failed');
  gate.resolve();
  const answer = await inProgress;
  expect(answer.status).toBe(202);
  expect(answer.headers.connection).toBe('close');
  await closed;
  expect(role.store.stored.map(item => item.body.toString())).toEqual(['kept']);
});

test('finishes a request that was received in part when closing, and closes the connection', async () => {
  const head = `POST /events/${role.store.tenant}/orders HTTP/1.1\r\nHost: x\r\nx-api-key: ${role.store.key}\r\n`;
  const accepted = Promise.withResolvers<Socket>();
  role.ingress.app.server.once('connection', accepted.resolve);
  const socket = connect(role.port, '127.0.0.1');
  socket.write(head);
  const serverSide = await accepted.promise;
  while (serverSide.bytesRead < head.length) await turn();
  const closed = role.ingress.close();
  socket.write('Content-Length: 4\r\n\r\nlate');
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 202 Accepted\r\nconnection: close\r\n/i);
  expect(role.store.stored.map(item => item.body.toString())).toEqual(['late']);
});

test('while draining, all requests that were sent together are answered before their connection is closed', async () => {
  const event = (id: string) =>
    `POST /events/${role.store.tenant}/orders HTTP/1.1\r\nHost: x\r\nx-api-key: ${role.store.key}\r\nwebhook-id: ${id}\r\nContent-Length: 2\r\n\r\nok`;
  const gate = Promise.withResolvers<void>();
  role.store.hold = gate.promise;
  const socket = connect(role.port, '127.0.0.1');
  socket.write(event('a') + event('b') + event('c'));
  while (role.store.calls.length === 0) await turn();
  role.ingress.drain();
  gate.resolve();
  let answers = '';
  for await (const chunk of socket) answers += String(chunk);
  expect([...answers.matchAll(/"id":"(\w)"/g)].map(([, id]) => id)).toEqual(['a', 'b', 'c']);
  expect(answers.match(/connection: close/gi)).toHaveLength(1);
  expect(role.store.stored.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
});

describe('a helpful response', () => {
  test('202 contains the group key with any characters, or null', async () => {
    const sent = { 'x-sluice-group-key': Buffer.from('Zürich 🚲 "1"').toString('latin1') };
    expect((await role.send({ headers: sent })).document).toMatchObject({ groupKey: 'Zürich 🚲 "1"' });
    expect((await role.send({})).document).toMatchObject({ groupKey: null });
  });

  test('a misspelled header is refused, and nothing is stored', async () => {
    const answer = await role.send({ headers: { 'x-sluice-groupkey': 'shop-1' } });
    expect([answer.status, JSON.stringify(answer.document)]).toEqual([
      422,
      expect.stringContaining('did you mean x-sluice-group-key?'),
    ]);
    expect(role.store.stored).toEqual([]);
  });

  test.each([
    ['POST', '/waas/streams', 'Send calls of /waas to the address of the REST API'],
    ['GET', '/docs', 'Send calls of /waas to the address of the REST API'],
    ['POST', '/events/ten_0123456789abcdefghjk/orders/', 'Remove the slash'],
    ['POST', '/event', 'POST /events/{tenant}/{queue}'],
  ] as const)('%s %s: 404 contains the correct path', async (method, path, words) => {
    const answer = await role.send({ method, path });
    expect([answer.status, JSON.stringify(answer.document)]).toEqual([404, expect.stringContaining(words)]);
  });

  test('401 explains how to create a key', async () => {
    const answer = await role.send({ headers: { 'x-api-key': 'wrong' } });
    expect([answer.status, JSON.stringify(answer.document)]).toEqual([
      401,
      expect.stringMatching(/POST \/waas\/producer.*sluice\.dev\/ingress-key.*20 bytes/),
    ]);
  });

  test('/openapi.json is the committed document, without a key', async () => {
    const answer = await fetch(`http://127.0.0.1:${role.port}/openapi.json`);
    const committed = readFileSync(new URL('../../../docs/events-openapi.json', import.meta.url), 'utf8');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(await answer.json()).toEqual(JSON.parse(committed));
    const headers = { 'if-none-match': answer.headers.get('etag') ?? '' };
    expect((await fetch(`http://127.0.0.1:${role.port}/openapi.json`, { headers })).status).toBe(304);
  });

  test('the type of a problem leads to its page', async () => {
    const { document } = await role.send({ headers: { 'x-api-key': 'wrong' } });
    const answer = await fetch(`http://127.0.0.1:${role.port}${(document as { type?: string }).type}`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringMatching(/^unauthenticated \(401\)/)]);
  });
});
