import { assert, constantFrom, dictionary, integer, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ContextHeaders, compileExtraction, extractContext } from './context-headers.ts';

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

function extract(
  headers: Record<string, string>,
  options: { lists?: Partial<ContextHeaders>; eventTypes?: string[]; body?: string | Buffer; raw?: string[] } = {},
) {
  return extractContext(compileExtraction(options.lists ?? {}, options.eventTypes ?? []), {
    headers,
    rawHeaders: options.raw ?? Object.entries(headers).flat(),
    body: Buffer.from(options.body ?? ''),
  });
}

function structured(event: unknown, headers: Record<string, string> = {}, lists: Partial<ContextHeaders> = {}) {
  const body = typeof event === 'string' ? event : JSON.stringify(event);
  return extract({ 'content-type': 'application/cloudevents+json; charset=utf-8', ...headers }, { body, lists });
}

/** The attributes of every CloudEvent. */
const EVENT = { specversion: '1.0', id: 'e-1', source: '/s', type: 'order.created' };

describe('defaults', () => {
  test('a list replaces the default, and an empty list does not read any headers', () => {
    const headers = { 'x-sluice-group-key': 'k', 'x-shop': 's', 'webhook-id': 'i' };
    expect(extract(headers, { lists: { groupKey: ['X-Shop'] } })).toMatchObject({ groupKey: 's', id: 'i' });
    expect(extract(headers, { lists: { groupKey: [], eventId: [] } })).toMatchObject({
      groupKey: undefined,
      id: undefined,
    });
  });

  test('an event without these headers is accepted without values', () => {
    expect(extract({})).toEqual({ id: undefined, type: undefined, groupKey: undefined, forward: {} });
  });

  test.each([
    ['type', 'x-sluice-event-type', ['ce-type', 'webhook-event']],
    ['groupKey', 'x-sluice-group-key', ['ce-partitionkey']],
    ['id', 'webhook-id', ['ce-id', 'idempotency-key']],
  ] as const)('for %s, %s is used before %s', (field, first, others) => {
    const headers = Object.fromEntries([first, ...others].map(name => [name, `from-${name}`]));
    for (const name of [first, ...others]) {
      expect(extract(headers)).toMatchObject({ [field]: `from-${name}` });
      delete headers[name];
    }
    expect(extract(headers)).toMatchObject({ [field]: undefined });
  });

  test('a list replaces the default, in upper or lower case', () => {
    const lists = { groupKey: ['X-Shop'] };
    expect(extract({ 'x-shop': 'a', 'x-sluice-group-key': 'b' }, { lists })).toMatchObject({ groupKey: 'a' });
    expect(extract({ 'x-sluice-group-key': 'b' }, { lists })).toMatchObject({ groupKey: undefined });
  });
});

describe('group keys', () => {
  test('latin1 characters of a header are read as UTF-8, byte by byte', () => {
    expect(extract({ 'x-sluice-group-key': latin1('Zürich 🚲') })).toMatchObject({ groupKey: 'Zürich 🚲' });
    expect(extract({ 'x-sluice-group-key': latin1('\uFEFFa') })).toMatchObject({ groupKey: '\uFEFFa' });
    expect(extract({ 'x-sluice-group-key': latin1('e\u0301') })).toMatchObject({ groupKey: 'e\u0301' });
  });

  test.each([
    ['not UTF-8', 'a\xff', /UTF-8/],
    ['cut UTF-8', latin1('é').slice(0, 1), /UTF-8/],
    ['control', 'a\tb', /control/],
    ['C1 control', latin1('a\u0085b'), /control/],
    ['DEL', 'a\x7fb', /control/],
    ['empty', '', /empty/],
    ['257 bytes', 'x'.repeat(257), /256/],
    ['257 bytes in 129 characters', `${latin1('é').repeat(128)}x`, /256/],
  ])('%s is refused with the name of its header', (_, value, detail) => {
    expect(extract({ 'x-sluice-group-key': value })).toEqual({
      code: 'invalid_context',
      errors: [{ header: 'x-sluice-group-key', detail: expect.stringMatching(detail) }],
    });
  });

  test('256 bytes are accepted', () => {
    expect(extract({ 'x-sluice-group-key': latin1('é'.repeat(128)) })).toMatchObject({ groupKey: 'é'.repeat(128) });
  });

  test('a header that was sent twice is refused, and a value with a comma is accepted', () => {
    const headers = { 'x-sluice-group-key': 'a, b' };
    expect(extract(headers)).toMatchObject({ groupKey: 'a, b' });
    const raw = ['X-Sluice-Group-Key', 'a', 'x-sluice-group-key', 'b'];
    expect(extract(headers, { raw })).toMatchObject({ code: 'invalid_context' });
  });

  test('an invalid first source is not replaced by the next source', () => {
    expect(extract({ 'x-sluice-group-key': '\xff', 'ce-partitionkey': 'good' })).toMatchObject({
      code: 'invalid_context',
    });
  });

  test('every valid key can be read from the header and from the CloudEvents encoding', () => {
    const key = string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter(
      text => text.isWellFormed() && !/\p{Cc}|^\p{Z}|\p{Z}$/u.test(text) && Buffer.byteLength(text) <= 256,
    );
    assert(
      property(key, groupKey => {
        expect(extract({ 'x-sluice-group-key': latin1(groupKey) })).toMatchObject({ groupKey });
        const encoded = Buffer.from(groupKey).reduce((out, byte) => `${out}%${byte.toString(16).padStart(2, '0')}`, '');
        expect(extract({ 'ce-partitionkey': encoded })).toMatchObject({ groupKey });
        expect(structured({ ...EVENT, partitionkey: groupKey })).toMatchObject({ groupKey });
      }),
    );
  });

  test('accepts any bytes in any header without throwing, and only returns valid keys', () => {
    const value = string({
      unit: integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)),
      maxLength: 300,
    });
    const name = constantFrom(
      'x-sluice-group-key',
      'ce-partitionkey',
      'ce-id',
      'webhook-id',
      'ce-type',
      'content-type',
    );
    assert(
      property(dictionary(name, value), value, (headers, body) => {
        const found = extract(headers, { body: Buffer.from(body, 'latin1') });
        if ('code' in found || found.groupKey === undefined) return;
        expect(found.groupKey).not.toMatch(/\p{Cc}/u);
        expect(Buffer.byteLength(found.groupKey)).toBeLessThanOrEqual(256);
        expect(found.groupKey.isWellFormed()).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe('CloudEvents binary mode', () => {
  test.each([
    ['Euro%20%E2%82%AC%20%F0%9F%98%80', 'Euro € 😀'],
    ['"quoted \\"text\\" %41"', 'quoted "text" A'],
    ['a%2541', 'a%41'],
    ['1+1', '1+1'],
  ])('%s is read as %s', (sent, groupKey) => {
    expect(extract({ 'ce-partitionkey': sent })).toMatchObject({ groupKey });
  });

  test.each(['100%', '%zz', '%ff', '"open', '%00', '%20a'])('%s is refused', sent => {
    expect(extract({ 'ce-partitionkey': sent })).toMatchObject({ code: 'invalid_context' });
  });

  test('only ce- headers are percent-decoded', () => {
    expect(extract({ 'x-sluice-group-key': '100%41' })).toMatchObject({ groupKey: '100%41' });
  });
});

describe('CloudEvents structured mode', () => {
  const event = {
    specversion: '1.0',
    id: 'e-1',
    source: '/s',
    type: 'order.created',
    partitionkey: 'shop 7',
    data: {},
  };

  test('the attributes contain id, type, and group key', () => {
    expect(structured(event)).toMatchObject({ id: 'e-1', type: 'order.created', groupKey: 'shop 7' });
  });

  test('headers that are first in a list take precedence; ce- headers are ignored', () => {
    expect(structured(event, { 'x-sluice-group-key': 'explicit' })).toMatchObject({ groupKey: 'explicit' });
    expect(structured({ ...event, partitionkey: undefined }, { 'ce-partitionkey': 'b' })).toMatchObject({
      groupKey: undefined,
    });
  });

  test('extension attributes can have the names of headers, and have canonical text', () => {
    expect(structured({ ...event, shop: 7 }, {}, { groupKey: ['ce-shop'] })).toMatchObject({ groupKey: '7' });
    expect(structured({ ...event, shop: true }, {}, { groupKey: ['ce-shop'] })).toMatchObject({ groupKey: 'true' });
    const without = structured(event, {}, { eventType: ['x-kind'], groupKey: [], eventId: ['x-id'] });
    expect(without).toMatchObject({ id: undefined, type: undefined, groupKey: undefined });
    expect(structured(event, {}, { groupKey: ['ce-constructor'] })).toMatchObject({ groupKey: undefined });
  });

  test('an attribute that is not a valid group key is refused with a pointer', () => {
    expect(structured({ ...event, partitionkey: ' a' })).toEqual({
      code: 'invalid_context',
      errors: [{ pointer: '/partitionkey', detail: expect.stringContaining('space') }],
    });
    expect(structured({ ...event, partitionkey: {} })).toMatchObject({ errors: [{ pointer: '/partitionkey' }] });
  });
});

describe('ids, types and forwarded headers', () => {
  test.each(['', ' a', 'é', 'x'.repeat(257)])('id %j is refused', id => {
    expect(extract({ 'webhook-id': id })).toMatchObject({
      code: 'invalid_context',
      errors: [{ header: 'webhook-id' }],
    });
  });

  test.each(['', 'a b', 'é', 'x'.repeat(129)])('type %j is refused', type => {
    expect(extract({ 'x-sluice-event-type': type })).toMatchObject({ code: 'invalid_context' });
  });

  test('lists the declared types if a type is unknown or missing', () => {
    const eventTypes = ['order.created', 'order.paid'];
    expect(extract({ 'ce-type': 'order.paid' }, { eventTypes })).toMatchObject({ type: 'order.paid' });
    for (const headers of [{ 'ce-type': 'order.lost' }, {}]) {
      expect(extract(headers, { eventTypes })).toMatchObject({
        code: 'unknown_event_type',
        errors: [{ detail: expect.stringContaining('order.created, order.paid') }],
      });
    }
  });

  test('names the header or the attribute with an unknown type', () => {
    const options = { eventTypes: ['order.paid'] };
    const errorsOf = (headers: Record<string, string>, body?: string) => {
      const refusal = extract(headers, { ...options, ...(body && { body }) });
      return 'errors' in refusal ? refusal.errors.map(({ header, pointer }) => header ?? pointer) : [];
    };
    expect(errorsOf({})).toEqual(['x-sluice-event-type']);
    expect(errorsOf({ 'x-sluice-event-type': 'a', 'ce-type': 'order.paid' })).toEqual(['x-sluice-event-type']);
    expect(errorsOf({ 'ce-type': 'a' })).toEqual(['ce-type']);
    const type = { 'content-type': 'application/cloudevents+json' };
    expect(errorsOf(type, JSON.stringify(EVENT))).toEqual(['/type']);
    expect(errorsOf({ ...type, 'x-sluice-event-type': 'a' }, JSON.stringify(EVENT))).toEqual(['x-sluice-event-type']);
  });

  test('listed headers are forwarded unchanged, and credentials are never forwarded', () => {
    const lists = {
      forward: ['X-Trace', 'Authorization', 'x-api-key', 'cookie', 'X-Absent'],
      groupKey: ['authorization'],
    };
    const headers = { 'x-trace': 'a, b', authorization: 'Bearer secret', 'x-api-key': 'secret', cookie: 'c' };
    expect(extract(headers, { lists })).toEqual({
      id: undefined,
      type: undefined,
      groupKey: undefined,
      forward: { 'x-trace': 'a, b' },
    });
  });

  test('the size of each forwarded header and of all of them is limited', () => {
    const lists = { forward: ['x-0', 'x-1', 'x-2', 'x-3', 'x-4'] };
    expect(extract({ 'x-0': 'a'.repeat(2049) }, { lists })).toMatchObject({ errors: [{ header: 'x-0' }] });
    const many = Object.fromEntries(lists.forward.map(name => [name, 'a'.repeat(2048)]));
    expect(extract(many, { lists })).toMatchObject({ code: 'invalid_context' });
    delete many['x-4'];
    delete many['x-3'];
    expect(extract(many, { lists })).toMatchObject({ forward: many });
  });

  test('all faults are reported together', () => {
    const found = extract({ 'webhook-id': '', 'x-sluice-event-type': 'a b', 'x-sluice-group-key': '\xff' });
    expect(found).toMatchObject({ errors: [{}, {}, {}] });
  });
});

describe('headers with the prefix of Sluice', () => {
  test.each([
    ['x-sluice-groupkey', 'did you mean x-sluice-group-key?'],
    ['x-sluice-type', 'known: x-sluice-event-type, x-sluice-group-key'],
    ['x-sluice-tenant', 'known: x-sluice-event-type, x-sluice-group-key'],
  ])('%s: is refused with a suggestion', (header, words) => {
    expect(extract({ [header]: 'secret', 'x-sluice-group-key': 'k' })).toEqual({
      code: 'invalid_context',
      errors: [{ header, detail: expect.stringContaining(words) }],
    });
  });

  test('headers that the stream lists are accepted for any use', () => {
    const lists = { groupKey: ['X-Sluice-Shop'], forward: ['x-sluice-trace'] };
    const headers = { 'x-sluice-shop': 's', 'x-sluice-trace': 't', 'x-sluice-event-type': 'a', 'x-sluicegate': 'g' };
    expect(extract(headers, { lists })).toMatchObject({ groupKey: 's', forward: { 'x-sluice-trace': 't' } });
  });

  test('only a few of very many headers are listed in the response', () => {
    const headers = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-sluice-${i}`, '']));
    expect(extract(headers)).toMatchObject({ errors: { length: 10 } });
  });
});
