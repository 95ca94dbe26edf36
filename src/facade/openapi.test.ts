import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { PROBLEMS } from '../core/problems/problems.ts';
import { PATH_PARAMETERS } from './contract/fields.ts';
import { problemsOf } from './contract/problem-codes.ts';
import { bodyLimitOf } from './contract/route.ts';
import { describeRoutes, parametersOf, resolveReference } from './openapi.ts';
import { ROUTES } from './routes.ts';

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** The paths of all fields below a schema that don't have a description. */
function undescribed(given: Schema, path = ''): string[] {
  const schema = given.$ref === undefined ? given : (resolveReference(document, given.$ref) as Schema);
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const description =
      child.description ?? (child.$ref && (resolveReference(document, child.$ref) as Schema).description);
    return [...(description === undefined ? [`${path}/${name}`] : []), ...undescribed(child, `${path}/${name}`)];
  });
  return [...below, ...(schema.items === undefined ? [] : undescribed(schema.items, `${path}[]`))];
}

const document = describeRoutes(ROUTES, '0.1.0');
const operations = Object.values(document.paths).flatMap(item => Object.values(item));

test('is a valid OpenAPI 3.1 document according to an independent validator', async () => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(document) as never)).toMatchObject({ valid: true });
  expect(validator.version).toBe('3.1');
});

test('the document contains every route once, with a unique name', () => {
  expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(
    ROUTES.map(({ operation }) => operation).toSorted(),
  );
  expect(new Set(ROUTES.map(({ operation }) => operation)).size).toBe(ROUTES.length);
});

test('each status has one shared response', () => {
  const names = Object.keys(document.components.responses);
  expect(names).toEqual(expect.arrayContaining(['BadRequest', 'Unauthorized', 'Conflict', 'ServiceUnavailable']));
  expect(names.length).toBe(new Set(ROUTES.flatMap(problemsOf).map(code => PROBLEMS[code].status)).size);
});

test('responses that are sent after the token was checked have the headers of the rate limit', () => {
  const namesOf = ({ headers = {} }: { headers?: object } = {}) => Object.keys(headers);
  expect(namesOf(document.components.responses['TooManyRequests'])).toEqual([
    'Retry-After',
    'RateLimit-Policy',
    'RateLimit',
  ]);
  expect(namesOf(document.components.responses['Forbidden'])).toEqual(['RateLimit-Policy', 'RateLimit']);
  expect(namesOf(document.components.responses['Unauthorized'])).toEqual(['WWW-Authenticate']);
  for (const { operationId, responses } of operations) {
    const successes = Object.entries(responses).filter(([status]) => status < '300');
    for (const [, response] of successes) {
      expect(namesOf(response), operationId).toEqual(expect.arrayContaining(['RateLimit-Policy', 'RateLimit']));
    }
  }
});

test('a description contains the points if a call costs more than others', () => {
  const description = (id: string) => operations.find(({ operationId }) => operationId === id)?.description;
  expect(description('skipEvents')).toMatch(/ Costs 10 points of the rate limit\.$/);
  expect(description('listEvents')).toMatch(/ Costs 5 points of the rate limit\.$/);
  expect(description('getEvent')).not.toContain('points');
});

test('does not contain anything that is only used for Kubernetes', () => {
  expect(JSON.stringify(document)).not.toContain('x-kubernetes');
});

/** Returns the names of all fields that do not use camelCase, at any depth. */
function notCamelCase(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {} } = schema as Schema;
  return [
    ...Object.keys(properties).filter(name => !/^[a-z][A-Za-z0-9]*$/.test(name)),
    ...Object.values(schema).flatMap(notCamelCase),
  ];
}

/** Returns all schemas in the document, at any depth. */
function* schemasOf(node: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof node !== 'object' || node === null) return;
  yield node as Readonly<Record<string, unknown>>;
  for (const child of Object.values(node)) yield* schemasOf(child);
}

test('query parameters with numbers are integers, and numbers do not have the limits of the language', () => {
  const parameters = Object.values(document.paths)
    .flatMap(item => Object.values(item))
    .flatMap(operation => operation.parameters ?? []);
  const numbers = parameters.filter(({ name }) => name === 'limit' || name === 'wait');
  expect(numbers.length).toBeGreaterThan(10);
  for (const { schema } of numbers) {
    expect(schema).toMatchObject({ type: 'integer', minimum: expect.any(Number), maximum: expect.any(Number) });
    expect(schema).not.toHaveProperty('pattern');
  }
  for (const { minimum, maximum } of schemasOf(document)) {
    expect([minimum, maximum]).not.toContain(Number.MIN_SAFE_INTEGER);
    expect([minimum, maximum]).not.toContain(Number.MAX_SAFE_INTEGER);
  }
});

test('times have the format of a time', () => {
  const times = [...schemasOf(document)].filter(
    ({ type, description }) =>
      /RFC 3339/.test(String(description)) && (type === 'string' || (Array.isArray(type) && type.includes('string'))),
  );
  expect(times.length).toBeGreaterThan(10);
  for (const time of times) expect(time).toMatchObject({ format: 'date-time' });
});

test('every field of every body uses camelCase', () => {
  expect(notCamelCase(document)).toEqual([]);
});

test('the types of generated clients have names, and no name is used by a property of the same type', () => {
  const answers = Object.values(document.paths)
    .flatMap(item => Object.values(item))
    .flatMap(({ operationId, responses }) =>
      Object.entries(responses).map(([status, { content }]) => ({ name: `${operationId} ${status}`, content })),
    );
  const schemaOf = (content: object) => (content as Record<string, { readonly schema: object }>)['application/json'];
  const unnamed = answers.filter(
    ({ content }) => content !== undefined && !('$ref' in (schemaOf(content)?.schema ?? {})),
  );
  expect(unnamed.map(({ name }) => name)).toEqual([]);
  const schemas = Object.entries(document.components.schemas) as [string, { readonly properties?: object }][];
  const ambiguous = schemas.filter(([name, { properties = {} }]) =>
    Object.keys(properties).some(property => property.toLowerCase() === name.toLowerCase()),
  );
  expect(ambiguous.map(([name]) => name)).toEqual([]);
});

describe.each(ROUTES)('$operation', route => {
  const operation = document.paths[route.path]?.[route.method.toLowerCase()];

  test('every path parameter is known, and has a valid example', () => {
    for (const name of parametersOf(route.path)) {
      const { example } = PATH_PARAMETERS[name].meta() ?? {};
      expect(PATH_PARAMETERS[name].safeParse(example).success, name).toBe(true);
    }
  });

  test('every field and parameter of the request is described', () => {
    const bare = (operation?.parameters ?? []).filter(({ description }) => description === undefined);
    expect(bare.map(({ name }) => name)).toEqual([]);
  });

  test('every field of the body and the responses is described', () => {
    const bodies = operation?.requestBody === undefined ? [] : [operation.requestBody];
    const contents = [...bodies, ...Object.values(operation?.responses ?? {})].flatMap(({ content = {} }) =>
      Object.values(content),
    );
    expect(contents.flatMap(({ schema }) => undescribed(schema))).toEqual([]);
  });

  test('its problems are in the document, and each status refers to the shared response', () => {
    expect(operation?.['x-problem-codes']).toEqual(problemsOf(route));
    for (const code of problemsOf(route)) {
      const { $ref = '', description } = operation?.responses[PROBLEMS[code].status] ?? {};
      const shared = document.components.responses[$ref.replace('#/components/responses/', '')];
      expect(description ?? shared?.description).toContain(`\`${code}\`: ${PROBLEMS[code].title}.`);
      expect(shared?.content?.['application/problem+json']?.schema).toEqual({ $ref: '#/components/schemas/Problem' });
    }
  });
});

test.each(ROUTES.filter(({ body }) => body !== undefined))(
  '$operation specifies the maximum size of its body',
  route => {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()];
    expect(operation?.requestBody?.description).toBe(`At most ${bodyLimitOf(route).toLocaleString('en')} bytes.`);
  },
);

test.each(ROUTES.filter(({ body }) => body !== undefined))('$operation has a valid example of its body', route => {
  const operation = document.paths[route.path]?.[route.method.toLowerCase()];
  const content = operation?.requestBody?.content['application/json'];
  expect(content?.example).toBeDefined();
  expect(route.body?.safeParse(content?.example).error?.issues).toBeUndefined();
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'document', ...document });
  const reference = JSON.parse(JSON.stringify(content?.schema).replaceAll('"#/', '"document#/')) as object;
  expect(ajv.validate(reference, content?.example), ajv.errorsText()).toBe(true);
});
