import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startIngress } from './testing/ingress-harness.ts';

let role: Awaited<ReturnType<typeof startIngress>>;
beforeEach(async () => {
  role = await startIngress();
});
afterEach(() => role.ingress.close());

const BINARY = { 'ce-specversion': '1.0', 'ce-id': 'e-1', 'ce-source': '/shop', 'ce-type': 'order.created' };

test('a CloudEvent in binary mode is stored with all its attributes', async () => {
  const headers = { ...BINARY, 'CE-Subject': 'caf%C3%A9', 'ce-shard': '7', 'content-type': 'application/xml' };
  expect(await role.send({ headers, body: '<a/>' })).toMatchObject({ status: 202, document: { id: 'e-1' } });
  expect(role.store.stored).toMatchObject([
    {
      id: 'e-1',
      type: 'order.created',
      contentType: 'application/xml',
      attributes: {
        specversion: '1.0',
        id: 'e-1',
        source: '/shop',
        type: 'order.created',
        subject: 'caf%C3%A9',
        shard: '7',
      },
    },
  ]);
});

test('stores an event that is not a CloudEvent without attributes', async () => {
  await role.send({ headers: { 'ce-type': 'order.created', 'x-sluice-group-key': 'k' } });
  expect(role.store.stored).toHaveLength(1);
  expect(role.store.stored[0]).not.toHaveProperty('attributes');
});

test.each([
  ['without a source', { 'ce-specversion': '1.0', 'ce-id': 'e', 'ce-type': 't' }, ''],
  ['without a version', { 'ce-id': 'e', 'ce-source': '/s', 'ce-type': 't' }, ''],
  ['with another version', { ...BINARY, 'ce-specversion': '2.0' }, ''],
  ['structured, without a source', { 'content-type': 'application/cloudevents+json' }, '{"specversion":"1.0"}'],
])('refuses a CloudEvent %s with 422, and stores nothing', async (_what, headers, body) => {
  expect(await role.send({ headers: headers as Record<string, string>, body })).toMatchObject({
    status: 422,
    document: { code: 'malformed_cloudevent' },
  });
  expect(role.store.stored).toEqual([]);
});

test('a structured CloudEvent that is not JSON results in 400', async () => {
  const headers = { 'content-type': 'application/cloudevents+json' };
  expect(await role.send({ headers, body: '{' })).toMatchObject({
    status: 400,
    document: { code: 'malformed_body', detail: expect.stringContaining('a CloudEvent') },
  });
});

describe('415 contains what to send instead', () => {
  test.each([
    ['application/cloudevents-batch+json', 'in a separate request'],
    ['Application/CloudEvents-Batch+JSON; charset=utf-8', 'in a separate request'],
    ['application/cloudevents-batch', 'in a separate request'],
    ['application/cloudevents+avro', 'application/cloudevents+json'],
    ['application/cloudevents+xml', 'application/cloudevents+json'],
    ['application/cloudevents', 'application/cloudevents+json'],
  ])('%s', async (contentType, words) => {
    for (const body of ['[]', Buffer.alloc(300_000)]) {
      expect(await role.send({ headers: { ...BINARY, 'content-type': contentType }, body })).toMatchObject({
        status: 415,
        document: { code: 'unsupported_media_type', detail: expect.stringContaining(words) },
      });
    }
    expect(role.store.stored).toEqual([]);
  });

  test('only for a sender with a key', async () => {
    const headers = { 'x-api-key': 'wrong', 'content-type': 'application/cloudevents-batch+json' };
    expect(await role.send({ headers, body: '[]' })).toMatchObject({ status: 401 });
  });
});
