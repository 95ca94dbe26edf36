import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chooseHeaders } from '../../api/context-headers.ts';
import { ROTATION_OVERLAP_MS, signingSecret } from '../../core/delivery/signing-secret.ts';
import { QUEUE } from '../../record/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import {
  answer,
  type RawRequest,
  type ScriptedEndpoint,
  startScriptedEndpoint,
} from '../dispatcher/testing/scripted-endpoint.ts';
import { createIngress } from '../ingress/server.ts';
import { createMemorySource } from '../memory-source.ts';
import { createPartIngestion } from '../part-ingestion.ts';
import { useOwnRedis } from './testing/own-redis.ts';
import { rootKey } from './testing/part-world.ts';
import { createPipeline, INGRESS_KEY } from './testing/pipeline.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

/** The wall clock of the dispatcher, which is used for rotations and for the timestamps of deliveries. */
const wall = { aheadMs: 0 };
const wallMs = () => Date.now() + wall.aheadMs;

const own = useOwnRedis({ appendonly: true });
let pipeline: ReturnType<typeof createPipeline>;
let endpoint: ScriptedEndpoint;
let eventsUrl: string;
const ends: (() => Promise<unknown>)[] = [];

/** Brings the subscription's endpoint into force with this version of its secret. */
function subscribe(secretVersion: number, rotatedAtMs?: number): Promise<void> {
  const rotation = rotatedAtMs === undefined ? {} : { rotatedAtMs };
  const contextHeaders = chooseHeaders({ forward: ['x-order'] });
  return pipeline.subscribe({ url: endpoint.url, secretVersion, ...rotation }, { contextHeaders });
}

beforeAll(async () => {
  const { redis, server } = own;
  endpoint = await startScriptedEndpoint(socket => socket.write(answer(204)));
  pipeline = createPipeline(redis);
  await subscribe(1);
  const stop = await pipeline.startDispatcher(server.url, { wallMs });
  const ingress = createIngress({
    store: createPartIngestion({ redis, nowMs: Date.now, alarm: () => {}, onRouted: () => {} }),
    memorySource: createMemorySource(redis),
    registry: createRegistry(),
    log: createLogger({ level: 'silent' }),
  });
  ends.push(ingress.close, stop);
  const port = await ingress.listen(0, '127.0.0.1');
  eventsUrl = `http://127.0.0.1:${port}/events/${pipeline.tenant}/${QUEUE}`;
});
afterAll(async () => {
  for (const end of ends) await end();
  await endpoint?.close();
});

interface Delivered {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

function parse({ head, body }: RawRequest): Delivered {
  const lines = head.split('\r\n').slice(1);
  const pairs = lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const);
  expect(new Set(pairs.map(([name]) => name)).size, 'each header once').toBe(pairs.length);
  return { headers: Object.fromEntries(pairs), body };
}

let published = 0;

/** Publishes a body using ingress. Returns the request received by the endpoint. */
async function deliver(body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Delivered> {
  const id = `event-${published++}`;
  const own = { 'x-api-key': INGRESS_KEY, 'x-sluice-group-key': 'k', 'x-sluice-event-type': 'order.created' };
  const response = await request(eventsUrl, {
    method: 'POST',
    headers: { ...own, 'webhook-id': id, ...headers },
    body,
  });
  expect([response.statusCode, await response.body.json()]).toEqual([202, { id, duplicate: false, groupKey: 'k' }]);
  const arrived = () => endpoint.requests.find(({ head }) => head.includes(`\r\nwebhook-id: ${id}\r\n`));
  return parse(
    await expect
      .poll(arrived, { timeout: 10_000, interval: 5 })
      .toBeDefined()
      .then(() => arrived() as RawRequest),
  );
}

/**
 * Returns whether one of the signatures was created with the secret, using the public package if it can read the body.
 */
function isVerified({ headers, body }: Delivered, secret: string): boolean {
  const { 'webhook-id': id = '', 'webhook-timestamp': seconds = '', 'webhook-signature': signatures = '' } = headers;
  const text = body.toString('utf8');
  // The package only signs text.
  const expected = Buffer.from(text, 'utf8').equals(body)
    ? new Webhook(secret).sign(id, new Date(Number(seconds) * 1_000), text)
    : `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
        .update(`${id}.${seconds}.`)
        .update(body)
        .digest('base64')}`;
  return signatures.split(' ').includes(expected);
}

const secretOf = (version: number) => signingSecret({ rootKey, subscriptionId: pipeline.sub, salt: 'a-salt' }, version);
const bytes = (text: string, encoding: BufferEncoding = 'utf8') => Buffer.from(text, encoding);
const everyByte = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
const multipart = bytes(
  '--b0\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--b0\r\ncontent-type: image/png\r\n\r\n\x89PNG\0\xff\r\n--b0--\r\n',
  'latin1',
);

const BODIES: readonly (readonly [what: string, contentType: string | undefined, body: Buffer])[] = [
  ['JSON', 'application/json', bytes('{"order":1,"text":"grüße \u{1F600}"}')],
  ['JSON in an unusual notation', 'application/json', bytes(' {\r\n"b" : 1.0e2,\t"a":"\\u00e4", "a" : null }\n\n')],
  ['JSON with a byte order mark', 'application/json; charset=utf-8', bytes('\ufeff{"a":1}')],
  ['invalid JSON', 'application/json', bytes('{"a":')],
  ['a type of its own', 'application/vnd.acme.order+json;version="1;2"', bytes('{"order":1}')],
  ['text', 'text/plain', bytes('line\r\nline\n\u2028\u0000end')],
  ['text in Latin-1', 'text/plain; charset=ISO-8859-1', bytes('caf\xe9 \xa4', 'latin1')],
  ['text in UTF-16', 'text/xml; charset="UTF-16"', bytes('\ufeff<a>ü</a>', 'utf16le')],
  ['XML', 'application/xml', bytes('<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>', 'latin1')],
  ['a form', 'application/x-www-form-urlencoded', bytes('a=1&b=%C3%A4+%2B&&')],
  ['several parts', 'multipart/form-data; boundary=b0', multipart],
  ['every byte', 'application/octet-stream', everyByte],
  ['every byte, declared as JSON', 'application/json', everyByte],
  [
    'bytes that are not UTF-8',
    'text/plain; charset=utf-8',
    Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0xf8]),
  ],
  ['compressed', 'application/gzip', gzipSync('{"a":1}')],
  ['no content type', undefined, bytes('{"a":1}')],
  ['no content type, and bytes', undefined, everyByte],
  ['nothing', undefined, Buffer.alloc(0)],
  ['an empty body, declared as JSON', 'application/json', Buffer.alloc(0)],
  ['256 KiB of bytes', 'application/octet-stream', Buffer.concat(Array.from({ length: 1024 }, () => everyByte))],
  ['256 KiB of JSON', 'application/json', bytes(JSON.stringify('ä'.repeat(131_071)))],
  ['a type in capitals', 'TEXT/Plain;Charset=US-ASCII', bytes('abc')],
];

describe('an event of a producer is delivered unchanged, signed, and as a CloudEvent', () => {
  test.each(BODIES)('%s', async (_what, contentType, body) => {
    const got = await deliver(body, contentType === undefined ? {} : { 'content-type': contentType });
    expect(got.body.equals(body)).toBe(true);
    expect(got.headers['content-type']).toBe(contentType);
    expect(got.headers['content-length']).toBe(String(body.length));
    expect(got.headers).not.toHaveProperty('content-encoding');
    expect(isVerified(got, secretOf(1))).toBe(true);
    expect(isVerified({ ...got, body: Buffer.concat([body, bytes(' ')]) }, secretOf(1))).toBe(false);
    expect(isVerified(got, secretOf(2))).toBe(false);
    // The body is not compared here because the package parses bodies that are declared as JSON.
    const event = HTTP.toEvent({ headers: { ...got.headers, 'content-type': 'text/plain' }, body: '' });
    if (!(event instanceof CloudEvent)) throw new TypeError('more or less than one event');
    expect(event).toMatchObject({
      id: got.headers['webhook-id'],
      type: 'order.created',
      source: '/events/x/orders',
      specversion: '1.0',
      partitionkey: 'k',
    });
    expect(event.validate()).toBe(true);
  });

  test('the public verifier accepts it, and reads the event that was sent', async () => {
    const body = bytes('{"order":1}');
    const got = await deliver(body, { 'content-type': 'application/json', 'x-order': 'caf\xe9' });
    expect(new Webhook(secretOf(1)).verify(got.body, { ...got.headers })).toEqual({ order: 1 });
    expect(HTTP.toEvent({ headers: got.headers, body: got.body.toString() })).toMatchObject({ data: { order: 1 } });
    expect(got.headers['x-order']).toBe('caf\xe9');
  });

  test('a structured CloudEvent is delivered unchanged', async () => {
    const written = {
      specversion: '1.0',
      id: 'ce-1',
      source: '/producer',
      type: 'order.paid',
      partitionkey: 'k',
      data: { a: 1 },
    };
    const body = bytes(JSON.stringify(written, null, 2));
    const id = { 'webhook-id': 'structured' };
    const response = await request(eventsUrl, {
      method: 'POST',
      headers: { 'x-api-key': INGRESS_KEY, 'content-type': 'application/cloudevents+json', ...id },
      body,
    });
    expect(response.statusCode).toBe(202);
    await response.body.dump();
    const arrived = () => endpoint.requests.find(({ head }) => head.includes('\r\nwebhook-id: structured\r\n'));
    await expect.poll(arrived, { timeout: 10_000, interval: 5 }).toBeDefined();
    const got = parse(arrived() as RawRequest);
    expect(got.body.equals(body)).toBe(true);
    expect(isVerified(got, secretOf(1))).toBe(true);
    expect(HTTP.toEvent({ headers: got.headers, body: got.body.toString() })).toMatchObject({
      id: 'ce-1',
      data: { a: 1 },
    });
  });
});

test('accepts either secret during a rotation, and only the new one after 24 hours', async () => {
  const verifies = async () => {
    const got = await deliver(bytes('{}'));
    return [1, 2, 3].filter(version => isVerified(got, secretOf(version)));
  };
  expect(await verifies()).toEqual([1]);
  const rotatedAtMs = wallMs();
  await subscribe(2, rotatedAtMs);
  await expect.poll(verifies, SOON).toEqual([1, 2]);
  wall.aheadMs = ROTATION_OVERLAP_MS - 60_000;
  expect(await verifies()).toEqual([1, 2]);
  wall.aheadMs = ROTATION_OVERLAP_MS + 1_000;
  expect(await verifies()).toEqual([2]);
  // This is another rotation within 24 hours: the last two secrets are used, and never the first.
  await subscribe(3, wallMs());
  await expect.poll(verifies, SOON).toEqual([2, 3]);
});
