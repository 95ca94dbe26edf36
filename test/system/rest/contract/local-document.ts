import { type OpenApiDocument, resolveReference } from '../../../../src/facade/openapi.ts';
import { EXAMPLE_ID, type JsonSchema } from './schema-values.ts';

/**
 * Replaces the examples of the document in a value: ids of each prefix, and whole values that represent secrets such as
 * a token.
 */
export function localise(value: unknown, ids: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return ids[value] ?? ids[EXAMPLE_ID.exec(value)?.[1] ?? ''] ?? value;
  if (Array.isArray(value)) return value.map(each => localise(each, ids));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, localise(each, ids)]));
}

/** Returns a pattern which only matches ids with one prefix. */
const ONLY_ID = /^\^([a-z]{3,4}_)[^|]*\$$/;

/** Returns the schema of sent values, in which every id exists. References are resolved. */
function localSchema(document: OpenApiDocument, schema: JsonSchema, ids: Readonly<Record<string, string>>): JsonSchema {
  if (schema.$ref !== undefined) {
    return localSchema(document, resolveReference(document, schema.$ref) as JsonSchema, ids);
  }
  // A field that accepts other values in addition to ids is not changed.
  const [, prefix = ''] = ONLY_ID.exec(schema.pattern ?? '') ?? [];
  const id = ids[prefix];
  if (id !== undefined) return { type: 'string', enum: [id] };
  const map = (fields: Readonly<Record<string, JsonSchema>>) =>
    Object.fromEntries(Object.entries(fields).map(([name, child]) => [name, localSchema(document, child, ids)]));
  return {
    ...schema,
    ...(schema.properties === undefined ? {} : { properties: map(schema.properties) }),
    ...(schema.items === undefined ? {} : { items: localSchema(document, schema.items, ids) }),
    ...(schema.anyOf === undefined ? {} : { anyOf: schema.anyOf.map(each => localSchema(document, each, ids)) }),
  };
}

/** Returns the document for one world, in which sent values use existing names. */
export function localDocument(document: OpenApiDocument, ids: Readonly<Record<string, string>>): OpenApiDocument {
  const copy = structuredClone(document);
  for (const operation of Object.values(copy.paths).flatMap(item => Object.values(item))) {
    const { parameters = [], requestBody } = operation;
    const sent = [...parameters, ...Object.values(requestBody?.content ?? {})] as {
      schema: object;
      example?: unknown;
    }[];
    for (const each of sent) {
      each.schema = localSchema(document, each.schema, ids);
      if (each.example !== undefined) each.example = localise(each.example, ids);
    }
  }
  return copy;
}
