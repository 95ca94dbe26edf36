import { describe, expect, test } from 'vitest';
import { type ContextHeaders, compileExtraction, extractContext } from './context-headers.ts';
import { ATTRIBUTES_MAX, ATTRIBUTES_TOTAL_MAX_LENGTH } from './context-headers-limits.ts';

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

function extract(
  headers: Record<string, string>,
  { body = '', raw, lists = {} }: { body?: string; raw?: string[]; lists?: Partial<ContextHeaders> } = {},
) {
  const rawHeaders = raw ?? Object.entries(headers).flat();
  return extractContext(compileExtraction(lists, []), { headers, rawHeaders, body: Buffer.from(body) });
}

const REQUIRED = { 'ce-specversion': '1.0', 'ce-id': 'e-1', 'ce-source': '/shop', 'ce-type': 'order.created' };

describe('binary mode: values are stored unchanged', () => {
  test('keeps every attribute and every extension without the prefix, byte for byte', () => {
    const attributes = {
      specversion: '1.0',
      id: 'e-1',
      source: '/shop?a=%2541',
      type: 'order.created',
      time: '2026-11-22T08:00:00.000123+01:00',
      subject: 'Euro%20%E2%82%AC%20%f0%9f%98%80',
      dataschema: 'https://schemas.example/order#1',
      partitionkey: 'shop%207',
      flag: 'true',
      count: '-7',
      quoted: '"a \\"b\\" c"',
      raw: latin1('Zürich €'),
      rate: '100%',
      empty: '',
      constructor: 'x',
    };
    const headers = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]));
    expect(extract({ ...headers, 'content-type': 'text/plain' })).toEqual({
      id: 'e-1',
      type: 'order.created',
      groupKey: 'shop 7',
      forward: {},
      attributes,
    });
  });

  test('uses webhook-id as the event id, and keeps ce-id as the id of the producer', () => {
    expect(extract({ ...REQUIRED, 'webhook-id': 'w-1' })).toMatchObject({ id: 'w-1', attributes: { id: 'e-1' } });
    const strange = { ...REQUIRED, 'ce-id': 'Z%C3%BCrich', 'webhook-id': 'w-1' };
    expect(extract(strange)).toMatchObject({ id: 'w-1', attributes: { id: 'Z%C3%BCrich' } });
  });

  test.each([
    ['ce-type', { 'ce-type': 'order.created' }],
    ['ce-id, ce-type and ce-partitionkey', { 'ce-id': 'i', 'ce-type': 't', 'ce-partitionkey': 'k' }],
  ])('%s alone are treated like other headers, and are not a CloudEvent', (_what, headers) => {
    expect(extract(headers)).not.toHaveProperty('attributes');
    expect(extract(headers)).not.toHaveProperty('code');
  });

  test('headers that the stream reads are not a CloudEvent', () => {
    const lists = { groupKey: ['ce-shop'] };
    expect(extract({ 'ce-shop': 'a' }, { lists })).toMatchObject({ groupKey: 'a' });
    expect(extract({ 'ce-shop': 'a' })).toMatchObject({ code: 'malformed_cloudevent' });
  });
});

describe('binary mode: invalid attributes are refused by name', () => {
  const faultsOf = (headers: Record<string, string>, raw?: string[]) => {
    const found = extract(headers, raw === undefined ? {} : { raw });
    return 'code' in found ? [found.code, ...found.errors.map(({ header }) => header)] : 'taken';
  };

  test.each(Object.keys(REQUIRED))('refuses a missing %s', name => {
    const headers: Record<string, string> = { ...REQUIRED, 'ce-subject': 's' };
    delete headers[name];
    expect(faultsOf(headers)).toEqual(['malformed_cloudevent', name]);
  });

  test('reports all missing attributes together', () => {
    expect(faultsOf({ 'ce-specversion': '1.0' })).toEqual(['malformed_cloudevent', 'ce-id', 'ce-source', 'ce-type']);
  });

  test.each([
    ['ce-specversion', '0.3'],
    ['ce-specversion', ''],
    ['ce-id', ''],
    ['ce-source', ''],
    ['ce-type', ''],
    ['ce-subject', ''],
    ['ce-time', 'yesterday'],
    ['ce-time', '2026-02-30T12:00:00Z'],
    ['ce-time', '2026-11-22T24:00:00Z'],
    ['ce-time', '2026-11-22 08:00:00Z'],
    ['ce-dataschema', '/relative'],
    ['ce-dataschema', ''],
    ['ce-subject', 'a%0D%0Ax-injected: 1'],
    ['ce-subject', 'a%00'],
    ['ce-subject', latin1('a\u0085')],
    ['ce-subject', latin1('a\ufffe')],
    ['ce-subject', 'caf\xe9'],
    ['ce-my-extension', 'x'],
    ['ce-my_extension', 'x'],
    ['ce-', 'x'],
    ['ce-datacontenttype', 'text/plain'],
    ['ce-data', 'x'],
  ])('%s: %j', (name, value) => {
    expect(faultsOf({ ...REQUIRED, [name]: value })).toEqual(['malformed_cloudevent', name]);
  });

  test('refuses an attribute that was sent twice', () => {
    const headers = { ...REQUIRED, 'ce-subject': 'a, b' };
    expect(faultsOf(headers)).toBe('taken');
    const raw = [...Object.entries(REQUIRED).flat(), 'ce-subject', 'a', 'Ce-Subject', 'b'];
    expect(faultsOf(headers, raw)).toEqual(['malformed_cloudevent', 'ce-subject']);
  });

  test('refuses too many and too long attributes', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count - 4 }, (_, i) => [`ce-x${i}`, 'v']));
    expect(faultsOf({ ...REQUIRED, ...many(ATTRIBUTES_MAX) })).toBe('taken');
    expect(extract({ ...REQUIRED, ...many(ATTRIBUTES_MAX + 1) })).toMatchObject({
      code: 'malformed_cloudevent',
      errors: [{ detail: expect.stringContaining('64 attributes') }],
    });
    // Only the limit is reported, not each of very many invalid names.
    const invalid = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`ce-x-${i}`, 'v']));
    expect(extract({ ...REQUIRED, ...invalid })).toMatchObject({ errors: { length: 1 } });
    const used = Object.entries(REQUIRED).flat().join('').length + 'ce-x'.length;
    const left = ATTRIBUTES_TOTAL_MAX_LENGTH - used;
    expect(faultsOf({ ...REQUIRED, 'ce-x': 'v'.repeat(left) })).toBe('taken');
    expect(extract({ ...REQUIRED, 'ce-x': 'v'.repeat(left + 1) })).toMatchObject({
      code: 'malformed_cloudevent',
      errors: [{ detail: expect.stringContaining('8,192 bytes') }],
    });
  });

  test('accepts a time with any offset and any fraction', () => {
    for (const time of ['2026-11-22T08:00:00Z', '2024-02-29t23:59:60z', '1999-12-31T23:59:59.123456789-12:45']) {
      expect(faultsOf({ ...REQUIRED, 'ce-time': time })).toBe('taken');
    }
  });
});

describe('structured mode', () => {
  const EVENT = { specversion: '1.0', id: 'e-1', source: '/shop', type: 'order.created' };
  const STRUCTURED = { 'content-type': 'application/cloudevents+json' };
  const read = (event: object | string) =>
    extract(STRUCTURED, { body: typeof event === 'string' ? event : JSON.stringify(event) });
  const faultsOf = (event: object | string) => {
    const found = read(event);
    return 'code' in found ? [found.code, ...found.errors.map(({ pointer }) => pointer)] : 'taken';
  };

  test('keeps attributes in the body, and ignores ce- headers', () => {
    const found = extract(
      { ...STRUCTURED, 'ce-source': '/other', 'ce-bad_name': 'x' },
      { body: JSON.stringify(EVENT) },
    );
    expect(found).toEqual({ id: 'e-1', type: 'order.created', groupKey: undefined, forward: {} });
  });

  test.each(Object.keys(EVENT))('refuses %s if it is missing, null, empty, or not a string', name => {
    for (const value of [undefined, null, '', 7, {}]) {
      expect(faultsOf({ ...EVENT, [name]: value })).toEqual(['malformed_cloudevent', `/${name}`]);
    }
  });

  test.each([
    ['extensions of each type', { text: 'a\u00fc', yes: true, n: -2147483648, m: 2147483647, none: null, empty: '' }],
    ['every attribute', { time: '2026-11-22T08:00:00Z', subject: 's', dataschema: 'urn:x', datacontenttype: 'a/b' }],
    ['attributes that are null', { time: null, subject: null, dataschema: null, datacontenttype: null }],
    ['data of any type', { data: [1, { a: null }] }],
    ['data that is null', { data: null }],
    ['bytes', { data_base64: 'AP8=' }],
    ['no bytes', { data_base64: '' }],
    ['a content type with parameters', { datacontenttype: 'multipart/form-data; boundary="a b"; x=y', data: 'x' }],
  ])('accepts %s', (_what, more) => {
    expect(faultsOf({ ...EVENT, ...more })).toBe('taken');
  });

  test.each([
    ['/specversion', { specversion: '0.3' }],
    ['/time', { time: 'now' }],
    ['/time', { time: 1 }],
    ['/subject', { subject: '' }],
    ['/dataschema', { dataschema: 'order.json' }],
    ['/datacontenttype', { datacontenttype: 'json' }],
    ['/datacontenttype', { datacontenttype: '' }],
    ['/big', { big: 2147483648 }],
    ['/half', { half: 0.5 }],
    ['/list', { list: [] }],
    ['/object', { object: {} }],
    ['/control', { control: 'a\u0000' }],
    ['/lone', { lone: '\ud800' }],
    ['/Upper', { Upper: 'x' }],
    ['/a~1b', { 'a/b': 'x' }],
    ['/data_base64', { data_base64: 'no base64' }],
    ['/data_base64', { data_base64: 'AP8' }],
    ['/data_base64', { data_base64: 7 }],
    ['/data_base64', { data: {}, data_base64: 'AP8=' }],
  ])('%s is refused: %j', (pointer, more) => {
    expect(faultsOf({ ...EVENT, ...more })).toEqual(['malformed_cloudevent', pointer]);
  });

  test('returns 400 for invalid JSON, and 422 for JSON that is not an object', () => {
    expect(read('{"id":')).toMatchObject({ code: 'malformed_body', errors: [] });
    expect(faultsOf('[]')).toEqual(['malformed_cloudevent', '']);
  });

  test('truncates a long list of faults, and does not repeat long names', () => {
    const names = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`X${i}`, 1]));
    const found = read({ ...EVENT, ...names, [`_${'x'.repeat(10_000)}`]: 1 });
    expect(JSON.stringify(found).length).toBeLessThan(4_000);
  });

  test('reads type, group key, and id from the attributes', () => {
    const found = read({ ...EVENT, partitionkey: 'shop 7' });
    expect(found).toMatchObject({ id: 'e-1', type: 'order.created', groupKey: 'shop 7' });
  });
});
