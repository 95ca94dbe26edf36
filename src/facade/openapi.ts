import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import { PROBLEM_CONTENT_TYPE } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';
import { type ExampleSchema, exampleOf } from './contract/body-example.ts';
import { PATH_PARAMETERS, type PathParameter } from './contract/fields.ts';
import { problemsOf } from './contract/problem-codes.ts';
import type { Route } from './contract/route.ts';

const ProblemSchema = z
  .object({
    type: z
      .string()
      .meta({ description: 'Path of the page about this code, on the same server: /problems/ and the code.' }),
    title: z.string().meta({ description: 'What the code means, always in the same words.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status, again.' }),
    detail: z.string().meta({ description: 'What to change in this very request.' }),
    code: z.string().meta({ description: 'Stable; what programs should look at.' }),
    errors: z
      .array(
        z.object({
          pointer: z.string().optional().meta({ description: 'JSON Pointer into the body (RFC 6901).' }),
          header: z.string().optional().meta({ description: 'Name of a header.' }),
          parameter: z.string().optional().meta({ description: 'Name of a parameter of the path or the query.' }),
          detail: z.string().meta({ description: 'What is wrong there. Never the value that was sent.' }),
        }),
      )
      .optional()
      .meta({ description: 'Every fault that was found, where there is a place to name.' }),
  })
  .meta({ id: 'Problem', description: 'Why a call was refused (RFC 9457).' });

const text = (description: string) => ({ description, schema: { type: 'string' as const } });

/** Headers that an answer of a status always has. */
const HEADERS_OF_STATUS: Readonly<Record<string, Readonly<Record<string, ReturnType<typeof text>>>>> = {
  401: { 'WWW-Authenticate': text('The challenge (RFC 6750).') },
  429: { 'Retry-After': text('Seconds after which the call may be repeated.') },
  503: { 'Retry-After': text('Seconds after which the call may be repeated; that is safe.') },
};

/** What Kubernetes wants to know of a field means nothing here; and OpenAPI 3.1 has `examples` of a schema. */
export const tidySchema: ZodOpenApiOverride = ({ jsonSchema, zodSchema }) => {
  const schema = jsonSchema as Record<string, unknown>;
  const { def } = zodSchema._zod;
  // What may be null is described by what it is otherwise.
  const described = def.type === 'nullable' ? z.globalRegistry.get(def.innerType)?.description : undefined;
  if (described !== undefined) schema['description'] ??= described;
  for (const keyword of Object.keys(schema)) if (keyword.startsWith('x-kubernetes-')) delete schema[keyword];
  // Queries are text: the pattern of a number is not for programs that read `integer`. Formats say the same as theirs.
  if (schema['type'] === 'integer' || schema['format'] === 'date-time') delete schema['pattern'];
  // The bounds of the language, not of the field.
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum'];
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum'];
  if ('example' in schema) {
    schema['examples'] = [schema['example']];
    delete schema['example'];
  }
};

/** The answers of these problems, by status. */
export function failuresOf(problems: readonly ProblemCode[]): [string, object][] {
  const byStatus = Map.groupBy(problems, code => PROBLEMS[code].status);
  return [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, codes]: [number, ProblemCode[]]) => [
      `${status}`,
      {
        description: codes.map(code => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' '),
        'x-problem-codes': codes,
        ...(HEADERS_OF_STATUS[status] === undefined ? {} : { headers: HEADERS_OF_STATUS[status] }),
        content: { [PROBLEM_CONTENT_TYPE]: { schema: ProblemSchema } },
      },
    ]);
}

function answersOf(route: Route): ZodOpenApiOperationObject['responses'] {
  const successes = Object.entries(route.answers).map(([status, { description, schema, headers = {} }]) => [
    status,
    {
      description,
      ...(schema === undefined ? {} : { content: { 'application/json': { schema } } }),
      ...(Object.keys(headers).length === 0
        ? {}
        : { headers: Object.fromEntries(Object.entries(headers).map(([name, said]) => [name, text(said)])) }),
    },
  ]);
  return Object.fromEntries([...successes, ...failuresOf(problemsOf(route))]) as ZodOpenApiOperationObject['responses'];
}

const IdempotencyKey = z
  .string()
  .regex(/^[!-~]{1,255}$/)
  .optional()
  .meta({ description: 'Calls may be repeated as they are, and need no key; of a replay this is the id.' });

/** Names of the parameters in a path template. */
export function parametersOf(path: string): PathParameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as PathParameter);
}

function operationOf(route: Route): ZodOpenApiOperationObject {
  const names = parametersOf(route.path);
  const path = z.object(Object.fromEntries(names.map(name => [name, PATH_PARAMETERS[name]])));
  return {
    operationId: route.operation,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    requestParams: {
      ...(names.length === 0 ? {} : { path }),
      ...(route.query === undefined ? {} : { query: route.query as z.ZodObject }),
      ...(route.method === 'GET' ? {} : { header: z.object({ 'Idempotency-Key': IdempotencyKey }) }),
    },
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: route.bodyOptional !== true,
            content: { 'application/json': { schema: route.body } },
          },
        }),
    responses: answersOf(route),
  };
}

/** The document, as far as it is read here. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
  readonly tags: readonly { readonly name: string }[];
}

export interface OpenApiParameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: object;
}

export interface OpenApiResponse {
  readonly description: string;
  readonly 'x-problem-codes'?: readonly ProblemCode[];
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
  };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
}

/** The schema that a reference within the document leads to. */
export function resolveReference(document: OpenApiDocument, reference: string): object | undefined {
  return document.components.schemas[reference.replace('#/components/schemas/', '')];
}

/** Gives each body the example that follows from those of its fields. */
function addExamples(document: OpenApiDocument): void {
  for (const operation of Object.values(document.paths).flatMap(item => Object.values(item))) {
    const body = operation.requestBody?.content['application/json'] as { schema: ExampleSchema; example?: unknown };
    if (body === undefined) continue;
    const example = exampleOf(body.schema, reference => resolveReference(document, reference));
    if (example !== undefined) body.example = example;
  }
}

/** The OpenAPI 3.1 document of `routes`: what is committed, served at `/openapi.json`, and tested against. */
export function describeRoutes(routes: readonly Route[], version: string): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  }
  const created = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Sluice',
        version,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        description:
          'Distributes event streams of producers to integration partners. Every call writes or reads the custom resources of the cluster; what is answered with success is in force.',
      },
      servers: [{ url: '/' }],
      security: [{ bearer: [] }],
      tags: [...new Set(routes.map(({ tag }) => tag))].map(name => ({ name })),
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'A token of a configured OIDC issuer.',
          },
        },
      },
      paths,
    },
    { override: tidySchema },
  );
  // What two routes have in common is one object there; each gets its own, so that it may be written to.
  const document = JSON.parse(JSON.stringify(created)) as OpenApiDocument;
  addExamples(document);
  return document;
}
