import { CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import type { EventMeta } from '../../core/events/event-meta.ts';
import { createHeaderBuilder, eventHeaders, webhookId } from './headers.ts';
import { createSigner } from './signature.ts';

const key = Buffer.alloc(32, 5);
const sign = createSigner([key]);
const body = Buffer.from('{"a":1}');
const nowMs = Date.now();

const meta: EventMeta = {
  id: 'evt_1',
  type: 'order.created',
  groupKey: 'customer 42 "ü" 100%',
  time: Date.UTC(2026, 10, 21, 12, 0, 0, 5),
  contentType: 'application/json',
  source: '/ten_abc/orders',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};

function build(event: EventMeta, extra: Record<string, string> = {}, replayId?: string): Record<string, string> {
  const lines =
    createHeaderBuilder({ version: '1.2.3', sign, extra })(eventHeaders(event), body, nowMs, replayId) ?? '';
  expect(lines).toMatch(/^([^:\r\n]+: [^\r\n]*\r\n)+$/);
  const pairs = [...lines.matchAll(/(.+?): (.*)\r\n/g)].map(([, name = '', value = '']) => [name, value] as const);
  expect(new Set(pairs.map(([name]) => name)).size).toBe(pairs.length);
  return Object.fromEntries(pairs);
}

describe('createHeaderBuilder', () => {
  test('contains all headers of a delivery', () => {
    expect(build(meta)).toEqual({
      'user-agent': 'sluice/1.2.3',
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(nowMs / 1000)),
      'webhook-signature': sign('evt_1', Math.floor(nowMs / 1000), body),
      'ce-specversion': '1.0',
      'ce-id': 'evt_1',
      'ce-source': '/ten_abc/orders',
      'ce-type': 'order.created',
      'ce-time': '2026-11-21T12:00:00.005Z',
      'ce-partitionkey': 'customer%2042%20%22%C3%BC%22%20100%25',
      'x-sluice-event-type': 'order.created',
      'x-sluice-group-key': Buffer.from(meta.groupKey).toString('latin1'),
      'content-type': 'application/json',
      traceparent: meta.traceparent,
    });
  });

  test('a test event has no partition key and is a CloudEvent', () => {
    const headers = build({ ...meta, groupKey: '' });
    expect(headers).not.toHaveProperty('ce-partitionkey');
    expect(HTTP.toEvent({ headers, body: body.toString() })).toMatchObject({ id: 'evt_1', type: 'order.created' });
  });

  test('the public CloudEvents package can read it', () => {
    const received = HTTP.toEvent({ headers: build(meta), body: body.toString() });
    if (!(received instanceof CloudEvent)) throw new TypeError('more or less than one event');
    expect(received).toMatchObject({
      id: 'evt_1',
      source: '/ten_abc/orders',
      type: 'order.created',
      specversion: '1.0',
      time: '2026-11-21T12:00:00.005Z',
      datacontenttype: 'application/json',
      data: { a: 1 },
    });
    expect(decodeURIComponent(String(received.partitionkey))).toBe(meta.groupKey);
  });

  test('keeps the attributes of a CloudEvent in binary mode without adding others', () => {
    const attributes = {
      specversion: '1.0',
      id: 'Z%c3%bcrich',
      source: '/shop',
      type: 'com.acme.x',
      rate: '100%',
      e: '',
    };
    const headers = build({ ...meta, attributes });
    const sent = Object.entries(headers).filter(([name]) => name.startsWith('ce-'));
    expect(sent).toEqual(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]));
    expect(headers).toMatchObject({
      'webhook-id': 'evt_1',
      'x-sluice-event-type': 'order.created',
      'x-sluice-group-key': Buffer.from(meta.groupKey).toString('latin1'),
      'content-type': 'application/json',
    });
  });

  test('does not add ce- headers to a structured CloudEvent', () => {
    const contentType = 'Application/CloudEvents+JSON; charset=UTF-8';
    const headers = build({ ...meta, contentType }, {}, 'rpl_1');
    expect(Object.keys(headers).filter(name => name.startsWith('ce-'))).toEqual([]);
    expect(headers).toMatchObject({ 'content-type': contentType, 'webhook-id': 'evt_1', 'webhook-replay': 'rpl_1' });
    const event = { specversion: '1.0', id: 'e', source: '/s', type: 't', data: { a: 1 } };
    // The package compares the type case-sensitively.
    const lower = { ...headers, 'content-type': contentType.toLowerCase() };
    expect(HTTP.toEvent({ headers: lower, body: JSON.stringify(event) })).toMatchObject(event);
  });

  test('an attribute that is not valid in a header is omitted', () => {
    const headers = build({ ...meta, attributes: { id: 'a\r\nx: y', 'id: 1\r\nx': 'b', 'a-b': 'c', ok: 'd' } });
    expect(Object.keys(headers).filter(name => name.startsWith('ce-'))).toEqual(['ce-ok']);
  });

  test('the public Standard Webhooks package verifies it', () => {
    expect(new Webhook(`whsec_${key.toString('base64')}`).verify(body, build(meta))).toEqual({ a: 1 });
  });

  test('signs the encoded id if a header cannot contain it', () => {
    const headers = build({ ...meta, id: 'bestellung ü\n1' });
    expect(headers['webhook-id']).toBe('bestellung%20%C3%BC%0A1');
    expect(new Webhook(`whsec_${key.toString('base64')}`).verify(body, headers)).toEqual({ a: 1 });
  });

  test('omits unknown values, except for the type, which CloudEvents requires', () => {
    const headers = build({ id: 'e', groupKey: 'k', time: 0, source: '/s' });
    expect(headers).not.toHaveProperty('content-type');
    expect(headers).not.toHaveProperty('traceparent');
    expect(headers['ce-type']).toBe('event');
    expect(() => HTTP.toEvent({ headers, body: 'x' })).not.toThrow();
  });

  test('a replay has its header', () => {
    expect(build(meta, {}, 'rpl_1')).toMatchObject({ 'webhook-id': 'evt_1', 'webhook-replay': 'rpl_1' });
  });

  test('headers of the endpoint replace forwarded headers, and neither of them can set reserved names', () => {
    const headers = build(
      {
        ...meta,
        forward: {
          'x-tenant': 'a',
          'x-both': 'forwarded',
          authorization: 'Bearer producer',
          'ce-id': 'forged',
          host: 'x',
        },
      },
      {
        Authorization: 'Bearer partner',
        'X-Both': 'own',
        'Webhook-Id': 'forged',
        'Content-Length': '0',
        'x-bad': 'a\r\nb',
      },
    );
    expect(headers).toMatchObject({
      authorization: 'Bearer partner',
      'x-both': 'own',
      'x-tenant': 'a',
      'ce-id': 'evt_1',
      'webhook-id': 'evt_1',
    });
    for (const name of ['host', 'content-length', 'x-bad']) expect(headers).not.toHaveProperty(name);
  });

  test('a header that the endpoint specifies twice is sent once', () => {
    expect(build(meta, { Authorization: 'first', AUTHORIZATION: 'second' })).toMatchObject({ authorization: 'second' });
  });

  test('a value that would end its header is omitted', () => {
    const headers = build({ ...meta, contentType: 'a\r\nx: y', traceparent: '\n', forward: { 'x-a': 'b\r\nc: d' } });
    for (const name of ['content-type', 'traceparent', 'x-a']) expect(headers).not.toHaveProperty(name);
  });
});

test.each([
  ['evt_01', 'evt_01'],
  ['100% "sure" id', '100% "sure" id'],
  [' padded ', '%20padded%20'],
  ['\u00fc', '%C3%BC'],
])('the webhookId of %j is %j', (id, expected) => {
  expect(webhookId(id)).toBe(expected);
});
