import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import type { ProblemCode } from '../core/problems/problems.ts';
import { SCOPES } from './auth/scopes.ts';
import { type ExampleSchema, exampleOf } from './contract/body-example.ts';
import { PATH_PARAMETERS, type PathParameter } from './contract/fields.ts';
import { problemsOf } from './contract/problem-codes.ts';
import { bodyLimitOf, type Route, roleOf, TAGS } from './contract/route.ts';
import {
  createProblemResponses,
  type ProblemResponses,
  RATE_LIMIT_HEADERS,
  RATE_LIMIT_REFERENCES,
  textHeader,
} from './problem-responses.ts';

/** Strips Kubernetes keywords from a schema and replaces `example` with `examples` (OpenAPI 3.1). */
export const tidySchema: ZodOpenApiOverride = ({ jsonSchema, zodSchema }) => {
  const schema = jsonSchema as Record<string, unknown>;
  const { def } = zodSchema._zod;
  // Nullable schemas inherit the description of the inner type.
  const described = def.type === 'nullable' ? z.globalRegistry.get(def.innerType)?.description : undefined;
  if (described !== undefined) schema['description'] ??= described;
  for (const keyword of Object.keys(schema)) if (keyword.startsWith('x-kubernetes-')) delete schema[keyword];
  // All query parameters are text, so integers use a pattern. Remove it here if the type or format is sufficient for
  // clients.
  if (schema['type'] === 'integer' || schema['format'] === 'date-time') delete schema['pattern'];
  // Remove the limits of JavaScript numbers because the field has no such limits.
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum'];
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum'];
  if ('example' in schema) {
    schema['examples'] = [schema['example']];
    delete schema['example'];
  }
};

function answersOf(route: Route, problems: ProblemResponses): ZodOpenApiOperationObject['responses'] {
  const successes = Object.entries(route.answers).map(([status, { description, schema, headers = {} }]) => [
    status,
    {
      description,
      ...(schema === undefined ? {} : { content: { 'application/json': { schema } } }),
      headers: {
        ...Object.fromEntries(Object.entries(headers).map(([name, meaning]) => [name, textHeader(meaning)])),
        ...RATE_LIMIT_REFERENCES,
      },
    },
  ]);
  return { ...Object.fromEntries(successes), ...problems.of(problemsOf(route)) };
}

/** Descriptions of the Idempotency-Key header. */
const IDEMPOTENCY = {
  answer:
    'Makes the request safe to repeat. For 24 hours, a request with the same key and content returns the status and body of the first response, without performing the operation again. A key is valid for this operation, and for the workspace or integration in the path. If you use the key with different content, the response is a 422 `idempotency_conflict`. While the first request is in progress, the response is a 409 `idempotency_in_progress`. You can use the key of a rejected request again unless an earlier attempt was interrupted or returned a 5xx.',
  replay:
    "The id of the replay, which is unique for each integration. If the key doesn't consist of 1 to 64 letters, digits, _ and -, a hash of the key is used. Repeating the request with the same key returns the same replay. If you use the key for a different replay, the response is a 422 `idempotency_conflict`. Defaults to an id derived from the request.",
  none: 'Ignored because you can always repeat this request. Any key must consist of 1 to 255 visible ASCII characters.',
} as const;

const idempotencyKeyOf = ({ idempotency }: Route) =>
  z
    .string()
    .regex(/^[!-~]{1,255}$/)
    .optional()
    .meta({ description: IDEMPOTENCY[idempotency ?? 'none'] });

const IF_MATCH = z.string().optional().meta({
  description:
    'The `ETag` of the content that you have changed. If the content has changed in the meantime, the response is a 412 `precondition_failed`. Without this header, the content is replaced in any case.',
  example: '"2jmj7l5rSw0yVb_vlWAYkK"',
});

/** The headers of requests that make changes. */
function headersOf(route: Route) {
  return z.object({
    'Idempotency-Key': idempotencyKeyOf(route),
    ...(route.conditional === true ? { 'If-Match': IF_MATCH } : {}),
  });
}

/** Returns the names of the parameters in a path template. */
export function parametersOf(path: string): PathParameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as PathParameter);
}

/** Adds the number of points to the description of a call unless the call costs 1 point. */
function describe({ description, cost = 1 }: Route): { description?: string } {
  const price = cost === 1 ? undefined : `Costs ${cost} points of the rate limit.`;
  const words = [description, price].filter(text => text !== undefined).join(' ');
  return words === '' ? {} : { description: words };
}

function operationOf(route: Route, problems: ProblemResponses): ZodOpenApiOperationObject {
  const names = parametersOf(route.path);
  const path = z.object(Object.fromEntries(names.map(name => [name, PATH_PARAMETERS[name]])));
  return {
    operationId: route.operation,
    tags: [route.tag],
    summary: route.summary,
    ...describe(route),
    requestParams: {
      ...(names.length === 0 ? {} : { path }),
      ...(route.query === undefined ? {} : { query: route.query as z.ZodObject }),
      ...(route.method === 'GET' ? {} : { header: headersOf(route) }),
    },
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            description: `At most ${bodyLimitOf(route).toLocaleString('en')} bytes.`,
            required: route.bodyOptional !== true,
            content: { 'application/json': { schema: route.body } },
          },
        }),
    responses: answersOf(route, problems),
    security: [{ bearer: [route.scope] }],
    ...(route.access === 'caller' ? {} : { 'x-required-role': roleOf(route) }),
    'x-problem-codes': problemsOf(route),
  };
}

/** The parts of an OpenAPI document used by Sluice. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, OpenApiResponse>>;
  };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
}

export interface OpenApiParameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: object;
}

/** Response that is either defined here or refers to a shared problem response. */
export interface OpenApiResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, { readonly description: string } | { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: {
    readonly description?: string;
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
  };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
  /** Scope that the token must have, if scopes are required. */
  readonly security?: readonly [{ readonly bearer: readonly [string] }];
  /** Weakest role that the caller needs. Not set if the call does not require a role. */
  readonly 'x-required-role'?: string;
  /** All problems that the call can return. */
  readonly 'x-problem-codes': readonly ProblemCode[];
}

/** Returns the schema for a reference in the document. */
export function resolveReference(document: OpenApiDocument, reference: string): object | undefined {
  return document.components.schemas[reference.replace('#/components/schemas/', '')];
}

/** Adds an example for every body. The example is built from the examples of the fields. */
function addExamples(document: OpenApiDocument): void {
  for (const operation of Object.values(document.paths).flatMap(item => Object.values(item))) {
    const body = operation.requestBody?.content['application/json'] as { schema: ExampleSchema; example?: unknown };
    if (body === undefined) continue;
    const example = exampleOf(body.schema, reference => resolveReference(document, reference));
    if (example !== undefined) body.example = example;
  }
}

const SCOPE_MEANINGS = Object.entries(SCOPES)
  .map(([scope, meaning]) => `\`${scope}\`: ${meaning}`)
  .join(' ');

/** Returns the OpenAPI 3.1 document for the given `routes`, which is available at `/openapi.json`. */
export function describeRoutes(routes: readonly Route[], version: string): OpenApiDocument {
  const problems = createProblemResponses(routes.flatMap(problemsOf));
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route, problems) };
  }
  const created = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Sluice',
        version,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        description:
          'Distributes event streams from producers to their integration partners. Each call reads or writes custom resources in the cluster. A successful response means that the change is in force. All GET requests can also be sent as HEAD requests.',
      },
      servers: [{ url: '/' }],
      security: [{ bearer: [] }],
      tags: [...new Set(routes.map(({ tag }) => tag))].map(name => ({ name, description: TAGS[name] })),
      components: {
        headers: RATE_LIMIT_HEADERS,
        responses: problems.components,
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: `Access token (JWT) issued by one of the configured OIDC issuers. If the operator requires scopes, it must have the scope of the call. ${SCOPE_MEANINGS}`,
          },
        },
      },
      paths,
    },
    { override: tidySchema },
  );
  // Several routes in `created` share these objects and addExamples modifies them, so we need a copy.
  const document = JSON.parse(JSON.stringify(created)) as OpenApiDocument;
  addExamples(document);
  return document;
}
