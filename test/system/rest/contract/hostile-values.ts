import fc from 'fast-check';
import { anyText } from '../../../support/any-text.ts';
import type { JsonSchema, Resolve } from './schema-values.ts';

/** A path to a place in a JSON value. */
type Place = readonly (string | number)[];

/** Values which are mostly not valid in the place where they are used. */
const STRANGE: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 53,
  -0,
  1e308,
  '',
  ' ',
  '\t\n',
  'null',
  'x'.repeat(300),
  'x'.repeat(70_000),
  '\u0000',
  'a\u0000b',
  '\ud800',
  'a\udfff',
  '\u202e\u2066',
  'e\u0301'.repeat(90),
  '😀'.repeat(128),
  '😀'.repeat(129),
  '<script>alert(1)</script>',
  "'; DROP TABLE streams; --",
  '{{7*7}}',
  '${jndi:ldap://x}',
  '../../etc/passwd',
  'http://169.254.169.254/latest/meta-data',
  '@{ten_:mine:0}',
  [],
  [[]],
  [null],
  {},
  { '': '' },
  { a: { b: { c: {} } } },
];

/** Field names that have a meaning for JavaScript objects. */
const STRANGE_NAMES = [
  'extra',
  '',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '\u0000',
  'a.b',
  '~1',
  'é',
];

/** Returns all places in a value, starting with the value itself. */
function placesIn(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, child]) => placesIn(child, [...at, name]))];
}

function edited(value: unknown, [name, ...rest]: Place, edit: (old: unknown) => unknown): unknown {
  if (name === undefined) return edit(value);
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) };
  const next = edited((copy as Record<string, unknown>)[name], rest, edit);
  if (next === REMOVED) {
    if (Array.isArray(copy)) copy.splice(Number(name), 1);
    else Reflect.deleteProperty(copy, name);
    return copy;
  }
  return Object.defineProperty(copy, name, { value: next, enumerable: true, configurable: true, writable: true });
}

const REMOVED = Symbol('removed');

/** Returns the schema of a place, or undefined if there is none. */
function schemaAt(schema: JsonSchema | undefined, [name, ...rest]: Place, resolve: Resolve): JsonSchema | undefined {
  const found = schema?.$ref === undefined ? schema : resolve(schema.$ref);
  if (name === undefined || found === undefined) return found;
  return schemaAt(found.properties?.[name] ?? found.items, rest, resolve);
}

/** Returns values at the limits of a text or a list, and just beyond. */
function limitsOf(schema: JsonSchema | undefined, old: unknown): unknown[] {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum } = schema ?? {};
  const texts = [(minLength ?? 1) - 1, minLength, maxLength, (maxLength ?? 0) + 1];
  const lists = [(minItems ?? 1) - 1, maxItems, (maxItems ?? 0) + 1];
  return [
    ...(typeof old === 'string'
      ? texts.flatMap(n => (n === undefined || n < 0 || n > 200_000 ? [] : ['z'.repeat(n)]))
      : []),
    ...(Array.isArray(old) && old.length > 0
      ? lists.flatMap(n =>
          n === undefined || n < 0 || n > 2_000 ? [] : [Array.from({ length: n }, () => old[0] as unknown)],
        )
      : []),
    ...(typeof old === 'number' ? [(minimum ?? 0) - 1, minimum ?? 0, maximum ?? 0, (maximum ?? 0) + 1] : []),
  ];
}

/** Returns `value` with one to three faults: another type, a missing or additional field, or a wrong length. */
export function damaged(value: unknown, schema: JsonSchema, resolve: Resolve): fc.Arbitrary<unknown> {
  const once = (current: unknown): fc.Arbitrary<unknown> =>
    fc.constantFrom(...placesIn(current)).chain(place => {
      const limits: unknown[] = [];
      edited(current, place, old => {
        limits.push(...limitsOf(schemaAt(schema, place, resolve), old));
        return old;
      });
      const put = (arbitrary: fc.Arbitrary<unknown>) => arbitrary.map(other => edited(current, place, () => other));
      const add = fc
        .tuple(fc.constantFrom(...STRANGE_NAMES), fc.constantFrom(...STRANGE))
        .map(([name, other]) => edited(current, place, old => withField(old, name, other)));
      return fc.oneof(
        put(fc.constantFrom(...STRANGE)),
        put(anyText({ maxLength: 20 })),
        put(fc.jsonValue({ maxDepth: 3 })),
        add,
        ...(place.length === 0 ? [] : [fc.constant(edited(current, place, () => REMOVED))]),
        ...(limits.length === 0 ? [] : [{ weight: 2, arbitrary: put(fc.constantFrom(...limits)) }]),
      );
    });
  return fc.nat(2).chain(more => {
    let result = once(value);
    for (let i = 0; i < more; i++) result = result.chain(once);
    return result;
  });
}

function withField(old: unknown, name: string, value: unknown): unknown {
  if (typeof old !== 'object' || old === null || Array.isArray(old)) return { [name]: value, was: old };
  const copy = { ...old };
  return Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Bodies that are not JSON, or only almost JSON. */
export const STRANGE_BODIES: readonly (string | Buffer)[] = [
  '',
  ' ',
  '{',
  '}',
  '[1,',
  '{"a":1}}',
  "{'a':1}",
  '{"a":NaN}',
  '{"a":01}',
  '{"a":1,}',
  '\ufeff{}',
  'undefined',
  'null',
  'true',
  '7',
  '""',
  '[]',
  '{}',
  '{"a":"\\ud800"}',
  '{"a":"\\u0000"}',
  '{"__proto__":{"name":"x"}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"name":"a","name":"b"}',
  `{"a":${'9'.repeat(400)}}`,
  `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  '{"a":'.repeat(20_000) + '1' + '}'.repeat(20_000),
  '['.repeat(100_000),
  `"${'x'.repeat(1_048_575)}"`,
  `{"a":"${'x'.repeat(1_100_000)}"}`,
  Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  Buffer.from('{"a":"é"}', 'latin1'),
  Buffer.from('{}', 'utf16le'),
  Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
  'name=x&isPublic=true',
  '<?xml version="1.0"?><a/>',
];

/** Content types, and how a server is expected to interpret them. */
export const STRANGE_CONTENT_TYPES: readonly string[] = [
  '',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'multipart/form-data',
  'application/json; charset=utf-16',
  'application/json;charset=utf-8',
  'APPLICATION/JSON',
  'application/json, text/plain',
  'application/json-patch+json',
  'application/problem+json',
  'application/',
  '/',
  'x'.repeat(2_000),
  '*/*',
];

/** Headers that have a meaning for some servers, with values that they should not have. */
export const STRANGE_HEADERS: readonly (readonly [string, string | readonly string[]])[] = [
  ['idempotency-key', ''],
  ['idempotency-key', 'x'.repeat(255)],
  ['idempotency-key', 'x'.repeat(256)],
  ['idempotency-key', 'a b'],
  ['idempotency-key', 'é'],
  ['idempotency-key', ['a', 'b']],
  ['idempotency-key', 'key-1'],
  ['traceparent', 'garbage'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['traceparent', ['a', 'b']],
  ['accept', 'text/html'],
  ['accept', 'application/xml;q=0'],
  ['accept-encoding', 'br, gzip'],
  ['content-encoding', 'gzip'],
  ['x-http-method-override', 'DELETE'],
  ['x-original-url', '/waas/workspaces'],
  ['x-forwarded-host', 'evil.example'],
  ['forwarded', 'for=unknown'],
  ['if-match', '"x"'],
  ['if-none-match', '*'],
  ['range', 'bytes=0-1'],
  ['origin', 'null'],
  ['cookie', 'a=b; __proto__=c'],
  ['x-request-id', '../../x'],
  ['x-api-key', 'slk_0000'],
  ['expect', '100-continue'],
  ['expect', 'something'],
  ['te', 'trailers'],
  ['x-long', 'y'.repeat(20_000)],
  ['x-too-long', 'y'.repeat(40_000)],
];

/** Path segments, exactly as they are written into the path. */
export const STRANGE_SEGMENTS: readonly string[] = [
  'x',
  '0',
  '-1',
  'null',
  'undefined',
  '%00',
  '%2e%2e',
  '%2F',
  '..',
  '.',
  '%zz',
  '%',
  '%C3%28',
  '%F0%9F%98%80',
  'ten_',
  'ten_0123456789ABCDEFGHJK',
  'ten_0123456789abcdefghil',
  'ten_0123456789abcdefghjkk',
  '%20ten_0123456789abcdefghjk',
  '__proto__',
  'constructor',
  '*',
  ':tenant',
  '{tenant}',
  ';a=b',
  'a%0d%0aX-Injected:%20y',
  'y'.repeat(90),
  'y'.repeat(3_000),
];

/** Query strings, which are appended to the path. */
export const STRANGE_QUERIES: readonly string[] = [
  'unknown=1',
  'limit=0',
  'limit=251',
  'limit=-1',
  'limit=1e2',
  'limit=',
  'limit=1&limit=2',
  'limit[]=1',
  'limit[a]=1',
  'cursor=',
  'cursor=%00',
  'cursor=!!!!',
  'cursor=AAAA&cursor=BBBB',
  `cursor=${'A'.repeat(2_000)}`,
  'cursor=w7-_',
  '__proto__=x',
  'constructor=x',
  '__proto__[limit]=1',
  'a=%zz',
  'a=%C3%28',
  'access_token=abc',
  '&&&=',
  '?',
  '%00=%00',
  'status=Nope',
  'state=Nope',
  'since=yesterday',
  'since=2026-02-30T00:00:00Z',
  'until=9999999999999999999',
  'wait=999',
  'producerTenantPublicId=ten_1',
];
