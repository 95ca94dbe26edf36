import fc from 'fast-check';
import { idReference } from './id-pool.ts';

/** A node of JSON Schema (2020-12), as used by OpenAPI 3.1. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
}

export type Resolve = (reference: string) => JsonSchema;

/** The format of all example ids in the document. */
export const EXAMPLE_ID = /^([a-z]{3,4}_)(?:[0-9a-z]*0123456789abcdefghjk|A{43})$/;
const PREFIX = /^\^?\(?([a-z]{3,4}_)/;
/** The maximum length of texts and lists that do not test a limit. */
const USUAL_LENGTH = 40;
const USUAL_ITEMS = 4;

/** Values by field name, for fields whose schema is not sufficient. If undefined, the field is omitted. */
const BY_NAME: Readonly<Record<string, fc.Arbitrary<unknown> | undefined>> = {
  // A long poll would only increase the duration.
  wait: fc.constant('1'),
  waitSeconds: fc.constant(1),
  // Whether a cursor is valid depends on the existing data.
  cursor: undefined,
  url: fc.constantFrom('http://127.0.0.1:9/hook', 'https://partner.example/hooks/orders', 'https://10.0.0.1/'),
};

/** Returns the model of a record with these fields. */
export function modelOf(
  fields: readonly (readonly [name: string, schema: JsonSchema])[],
  resolve: Resolve,
): Record<string, fc.Arbitrary<unknown>> {
  const made = fields.flatMap(([name, schema]) => {
    const values = name in BY_NAME ? BY_NAME[name] : valuesOf(schema, resolve);
    return values === undefined ? [] : [[name, values] as const];
  });
  return Object.fromEntries(made);
}

/**
 * Returns the prefix of the ids accepted by a schema, based on its pattern or its example. Undefined if it is not an
 * id.
 */
export function idPrefixOf({ pattern, type, examples = [] }: JsonSchema): string | undefined {
  if (type !== 'string' || pattern === undefined) return undefined;
  return PREFIX.exec(pattern)?.[1] ?? EXAMPLE_ID.exec(String(examples[0]))?.[1];
}

/** Returns values accepted by a schema. Ids in these values are references to resources of the callers. */
export function valuesOf(schema: JsonSchema, resolve: Resolve): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) return valuesOf(resolve(schema.$ref), resolve);
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const several = schema.anyOf ?? schema.oneOf;
  if (several !== undefined) return fc.oneof(...several.map(each => valuesOf(each, resolve)));
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['object']);
  const made = fc.oneof(...types.map(type => ofType(type, schema, resolve)));
  const examples = (schema.examples ?? []).filter(() => idPrefixOf(schema) === undefined);
  return examples.length === 0 ? made : fc.oneof({ weight: 2, arbitrary: made }, fc.constantFrom(...examples));
}

function ofType(type: string, schema: JsonSchema, resolve: Resolve): fc.Arbitrary<unknown> {
  if (type === 'string') return textOf(schema);
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  if (type === 'array') {
    const most = Math.min(schema.maxItems ?? USUAL_ITEMS, Math.max(schema.minItems ?? 0, USUAL_ITEMS));
    return fc.array(valuesOf(schema.items ?? {}, resolve), { minLength: schema.minItems ?? 0, maxLength: most });
  }
  if (type === 'object') return objectOf(schema, resolve);
  const min = schema.minimum ?? (schema.exclusiveMinimum === undefined ? -1_000 : schema.exclusiveMinimum + 1);
  const max = schema.maximum ?? Math.max(min, 1_000_000);
  return type === 'integer' ? fc.integer({ min, max }) : fc.double({ min, max, noNaN: true });
}

function objectOf(schema: JsonSchema, resolve: Resolve): fc.Arbitrary<unknown> {
  const model = modelOf(Object.entries(schema.properties ?? {}), resolve);
  const known = fc.record(model, { requiredKeys: [...(schema.required ?? [])], noNullPrototype: true });
  if (typeof schema.additionalProperties !== 'object') return known;
  const names = valuesOf({ type: 'string', ...schema.propertyNames }, resolve) as fc.Arbitrary<string>;
  const more = fc.dictionary(names, valuesOf(schema.additionalProperties, resolve), {
    maxKeys: 3,
    noNullPrototype: true,
  });
  return fc.tuple(known, more).map(([own, others]) => ({ ...others, ...own }));
}

const FORMATS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  email: fc.integer({ min: 1, max: 5_000 }).map(n => `partner-${n}@example.com`),
  'date-time': fc
    // Times are in the future because some of them end something.
    .date({ min: new Date('2030-01-01T00:00:00Z'), max: new Date('2040-01-01T00:00:00Z'), noInvalidDate: true })
    .map(date => date.toISOString()),
  uri: fc.integer({ min: 1, max: 65_535 }).map(port => `http://127.0.0.1:${port}/hook`),
};

/** Returns well-formed text with various characters. Excludes NUL, which custom resources cannot contain. */
function textOf(schema: JsonSchema): fc.Arbitrary<string> {
  const prefix = idPrefixOf(schema);
  if (prefix !== undefined) return fc.nat(1_000).map(n => idReference(prefix, 'mine', n));
  const format = FORMATS[schema.format ?? ''];
  if (format !== undefined) return format;
  const { minLength = 0, maxLength = Infinity } = schema;
  const fits = (text: string) => [...text].length >= minLength && [...text].length <= maxLength;
  if (schema.pattern !== undefined) return matching(schema.pattern, schema.examples).filter(fits);
  const usual = { minLength, maxLength: Math.min(maxLength, Math.max(minLength, USUAL_LENGTH)) };
  const named = fc.stringMatching(/^[A-Za-z][a-z0-9 ]{2,12}[a-z0-9]$/).filter(fits);
  const any = fc.string({ ...usual, unit: 'grapheme' }).filter(text => fits(text) && !text.includes('\0'));
  return fc.oneof({ weight: 2, arbitrary: named }, any);
}

function matching(pattern: string, examples: readonly unknown[] = []): fc.Arbitrary<string> {
  try {
    return fc.stringMatching(new RegExp(pattern, 'u'), { size: 'small' });
  } catch {
    // Values for other patterns cannot be generated, so the documented examples are used.
    return fc.constantFrom(...(examples as string[]), '');
  }
}
