import { VERSION } from '../../../src/config/version.ts';
import { PROBLEMS, type ProblemCode } from '../../../src/core/problems/problems.ts';
import { OF_EVERY_CALL } from '../../../src/facade/contract/problem-codes.ts';
import {
  describeRoutes,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiResponse,
  resolveReference,
} from '../../../src/facade/openapi.ts';
import { ROUTES } from '../../../src/facade/routes.ts';
import { escapeMarkup, type Row, table } from '../markdown.ts';
import { anchorOf } from './problems.ts';

/** The parts of a JSON Schema node used on the page. */
interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
}

/** Renders docs/openapi.json: the document that the facade serves. */
export function renderOpenApi(): string {
  return `${JSON.stringify(describeRoutes(ROUTES, VERSION), null, 2)}\n`;
}

/** Renders docs/rest.md: every call of `/waas`, by tag. */
export function renderRest(): string {
  const document = describeRoutes(ROUTES, VERSION);
  const codes = OF_EVERY_CALL.map(code => `[\`${code}\`](problems/${code}.md)`).join(', ');
  return [
    '# REST interface',
    "The OpenAPI 3.1 document is available in [openapi.json](openapi.json). The facade also provides it at `GET /openapi.json`, and as a web page at `GET /docs`. These paths don't require a token. This page does not include the routes for publishing events and using the sandbox, which require an ingress key (see [events.md](events.md)).",
    "Calls to `/waas` require an access token (bearer) issued by a configured OIDC issuer. You also need to be an owner of the Workspace specified in the path or body, or of its Account, and have the role that is required for the call. Viewers can only read, Admins can change everything except for members, and Owners can also change members. The response is 403 if an object belongs to another user or doesn't exist.",
    'If the operator has set `SLUICE_OIDC_REQUIRE_SCOPES`, your token also requires the scope of the call (see [identity providers](identity-providers.md)). Tokens that are bound to a key or a certificate (`cnf`) are rejected.',
    'Request bodies must be JSON (UTF-8) of up to 16 KiB, or 1 MiB for calls which accept a schema or list (streams, subscriptions, events to acknowledge, and so on). Request bodies are limited to 5,000 fields and items, and queries are limited to 64 parameters. Compressed bodies are rejected with a 415 `unsupported_media_type`, so do not send the `Content-Encoding` header. Unknown fields are rejected, and types are not converted. When you receive a successful response, the change is in force. For this reason, the API waits up to 5 s for the controller, and otherwise responds with a 503 `not_in_force`.\n\n**All calls are safe to repeat.** A repeated call returns the same response without changing any data. The only exceptions are sending a test event, creating an ingress key, enabling an endpoint, and recovering events. To safely repeat these calls, use the `Idempotency-Key` header with 1 to 255 visible ASCII characters, such as a UUID. For 24 hours, a request with the same key and the same content returns the status and body of the first response even if the facade has been restarted in the meantime. These responses are stored in Redis and are encrypted using the root key. A key is only valid for the workspace or integration in the path, and for one operation. For each of these, up to 5,000 keys can be in use at the same time. If a key was used with different content or by another caller, the response is a 422 `idempotency_conflict`. If the first request is still in progress, the response is a 409 `idempotency_in_progress`. For replays, the key is the id of the replay. All other calls accept this header, but do not require it.',
    'Changes to a paused workspace (annotated with `sluice.dev/paused`) are rejected with a 409 `workspace_paused`. The exceptions are calls that only close access: blocking, deactivating, revoking an integration, and unsubscribing.',
    'Lists are returned as `{data, nextCursor}`, with 50 items per page by default. You can change this using `limit`. Due to the latency of a watch, lists may be slightly out of date. You can also send any `GET` request as a `HEAD` request, which returns the same status and headers without a body.',
    'Calls are limited for each caller, and for all callers of an account together. When a limit has been reached on a replica, the response is a 429 `rate_limited`. Most calls cost 1 point. Calls that read or change many objects or events cost 5 points, and calls that may need to read thousands of them cost 10 points, as specified in their descriptions. Listing, skipping, recovering, and replaying many events cost additional points, which are also specified in the descriptions. If a workspace, account, or receiving integration is unknown or belongs to another user, the call costs 20 additional points. A caller can use 6,000 points per minute. An account can use 30,000 points per minute by default, or the value of `spec.limits.requestsPerMinute`. Points are added back at a constant rate. You can use the points of 10 s in a single burst (1,000 for a caller, and 5,000 for an account), or up to 1,000 points if the limit is lower than 6,000. Calls to a workspace, or to an integration with this receiving workspace, are counted for the account of the workspace. If the operator has set `SLUICE_TRUSTED_PROXIES`, an address (or a /64 network when using IPv6) can also use 60,000 points per minute. In this case, each call costs 1 point regardless of whether its token is valid.',
    'Responses to callers with a valid token include the headers `RateLimit-Policy`, such as `"caller";q=1000;w=10, "account";q=5000;w=10` (bursts of 1,000 and 5,000 points, which are available again after 10 s), and `RateLimit`, such as `"caller";r=990;t=1, "account";r=4990;t=1` (the remaining points, and the number of seconds until all points are available again), as specified by draft-ietf-httpapi-ratelimit-headers. If a call has not reached an account, only the item `"caller"` is included. Calls to unknown paths are counted as well. When using address limits, `"address"` is the first item in all responses. Otherwise, responses sent before checking the token, such as a 503 `overloaded`, don\'t include these headers.',
    'On each replica, a caller can have up to 16 concurrent calls waiting for events, using `waitSeconds` or `wait`. Additional calls are rejected with a 429 `rate_limited`, and `detail` contains the limit and the number of waiting calls. Calls without a waiting time are not affected. While a call is waiting, the facade checks for events every 500 ms. Each check costs 1 point and is skipped if you have no points left.',
    'The Redis time used by the calls of an account is limited as well because it delays the events of other accounts. On each replica, an account can use up to 10 % of the time of a Redis master, plus any time not used during the last second. Additional calls are queued. If a call would have to wait too long, it is rejected with a 429 `rate_limited`. The maximum is 2 s for calls that only read, and 5 s before the call begins for calls that make changes. Pages of up to 1,000 events and long ranges require the most time.',
    `For the error format, see [Problems](problems.md). Any call may return ${codes}, as well as [\`not_found\`](problems/not_found.md) for an unknown path or [\`method_not_allowed\`](problems/method_not_allowed.md) for an unknown method.`,
    document.tags.map(({ name }) => `- [${name}](#${anchorOf(name)})`).join('\n'),
    ...document.tags.flatMap(({ name }) => renderTag(document, name)),
  ].join('\n\n');
}

/** Renders the section of a tag with all of its calls, without the problems that are `common` to all calls. */
export function renderTag(document: OpenApiDocument, tag: string, common = OF_EVERY_CALL): string[] {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ line: `${method.toUpperCase()} ${path}`, operation })),
  );
  return [
    `## ${tag}`,
    ...operations.flatMap(({ line, operation }) => renderOperation(document, line, operation, common)),
  ];
}

function renderOperation(
  document: OpenApiDocument,
  line: string,
  operation: OpenApiOperation,
  common: readonly ProblemCode[],
): string[] {
  const parameters = (operation.parameters ?? []).filter(({ in: place }) => place !== 'header');
  const body = operation.requestBody?.content['application/json'];
  const own = operation['x-problem-codes']
    .toSorted((a, b) => PROBLEMS[a].status - PROBLEMS[b].status)
    .filter(code => !common.includes(code));
  return [
    `### ${operation.summary}`,
    `\`${line}\`${operation.requestBody?.required === false ? ', the body is optional' : ''}`,
    ...renderPermissions(operation),
    ...(operation.description === undefined ? [] : [escapeMarkup(operation.description)]),
    ...(parameters.length === 0 ? [] : [table(['Parameter', 'Type', 'Description'], parameters.map(parameterRow))]),
    ...(body === undefined ? [] : renderBody(document, body.schema, body.example)),
    ...Object.entries(operation.responses)
      .filter(([status]) => Number(status) < 400)
      .flatMap(([status, response]) => renderAnswer(document, status, response)),
    `Problems: ${own.map(code => `${PROBLEMS[code].status} [\`${code}\`](problems/${code}.md)`).join(', ')}.`,
  ];
}

/** Renders the scope and the role required for a call. Calls of ingress don't require them. */
function renderPermissions({ security, 'x-required-role': role }: OpenApiOperation): string[] {
  const scope = security?.[0].bearer[0];
  if (scope === undefined) return [];
  return [
    `Scope: \`${scope}\`.${role === undefined ? '' : ` Role: ${role === 'Owner' ? role : `${role} or higher`}.`}`,
  ];
}

function parameterRow({ in: place, name, required, description, schema }: OpenApiParameter): Row {
  return [`\`${name}\` (${place})`, typeOf(schema, required === true), description ?? ''];
}

function renderBody(document: OpenApiDocument, schema: Schema, example: unknown): string[] {
  const fields = fieldsOf(document, '', schema);
  // The description of the call covers a body of any form.
  if (fields.length === 0) return [];
  const shown = example === undefined ? [] : [`\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``];
  return [table(['Body', 'Type', 'Description'], fields), ...shown];
}

function renderAnswer(
  document: OpenApiDocument,
  status: string,
  { description = '', content }: OpenApiResponse,
): string[] {
  const schema = content?.['application/json']?.schema;
  const said = `**${status}** ${escapeMarkup(description)}`;
  return schema === undefined
    ? [said]
    : [said, table(['Answer', 'Type', 'Description'], fieldsOf(document, '', schema))];
}

function resolve(document: OpenApiDocument, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const { $ref, ...own } = schema;
  return { ...(resolveReference(document, $ref) as Schema), ...own };
}

function fieldsOf(document: OpenApiDocument, path: string, from: Schema): Row[] {
  const schema = resolve(document, from);
  if (schema.items !== undefined) return fieldsOf(document, `${path}[]`, schema.items);
  const [only, none] = alternativesOf(document, schema);
  if (only !== undefined && none === undefined) return fieldsOf(document, path, only);
  return Object.entries(schema.properties ?? {}).flatMap(([name, given]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const child = resolve(document, given);
    const row = [
      `\`${at}\``,
      typeOf(child, schema.required?.includes(name) === true, document),
      child.description ?? '',
    ];
    return [row, ...fieldsOf(document, at, child)];
  });
}

/** Returns the alternatives of a schema except null. */
function alternativesOf(document: OpenApiDocument, { anyOf, oneOf }: Schema): Schema[] {
  return (anyOf ?? oneOf ?? []).map(each => resolve(document, each)).filter(({ type }) => type !== 'null');
}

function typeOf(schema: Schema, required: boolean, document?: OpenApiDocument): string {
  return [
    nameOf(schema, document),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minimum, schema.maximum === Number.MAX_SAFE_INTEGER ? undefined : schema.maximum, ''),
    range(schema.minItems, schema.maxItems, ' entries'),
    required ? '**required**' : undefined,
  ]
    .filter(part => part !== undefined)
    .join(', ');
}

function nameOf(schema: Schema, document?: OpenApiDocument): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map(value => `\`${value}\``).join(' or ');
  const several = schema.anyOf ?? schema.oneOf;
  if (several !== undefined) {
    const names = several.map(each => nameOf(document === undefined ? each : resolve(document, each), document));
    return [...new Set(names)].join(' or ');
  }
  if (schema.items !== undefined) {
    return `list of ${nameOf(document === undefined ? schema.items : resolve(document, schema.items), document)}`;
  }
  if (typeof schema.additionalProperties === 'object') return `map of ${nameOf(schema.additionalProperties, document)}`;
  const { type = 'any' } = schema;
  const name = typeof type === 'string' ? type : type.join(' or ');
  return schema.format === undefined ? name : `${name} (${schema.format})`;
}

function range(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (most === undefined) return least === undefined ? undefined : `at least ${least}${unit}`;
  return least === undefined ? `at most ${most}${unit}` : `${least} to ${most}${unit}`;
}
