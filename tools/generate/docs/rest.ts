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

/** The parts of a JSON Schema node that the page shows. */
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
    "The OpenAPI 3.1 document can be found in [openapi.json](openapi.json). It is also served by the facade at `GET /openapi.json`, and as a web page at `GET /docs`, neither of which require a token. This page does not cover publishing events and using the sandbox, for which you'll need an ingress key (see [events.md](events.md)).",
    "Calls to `/waas` must be authenticated using an access token (bearer) issued by a configured OIDC issuer. In addition, you must be an owner of either the Workspace specified in the path or body, or its Account, with the role that each call requires. Viewers can only read, Admins can change everything except for members, and Owners can change members as well. A 403 is returned for objects belonging to another user, as well as for those that don't exist.",
    'If the operator has set `SLUICE_OIDC_REQUIRE_SCOPES`, your token also needs the scope of the call (see [identity providers](identity-providers.md)). Tokens that are bound to a key or a certificate (`cnf`) are rejected.',
    "Request bodies must be JSON (UTF-8) of up to 16 KiB, or 1 MiB for calls accepting a schema or list (streams, subscriptions, events to acknowledge, and so on). They are limited to 5,000 fields and items, and queries to 64 parameters. Compressed bodies are rejected with a 415 `unsupported_media_type`, so leave out the header `Content-Encoding`. Unknown fields are rejected, and types won't be converted. By the time you receive a successful response, the change is in force. To make this possible, the API waits for the controller for up to 5 s before giving up with a 503 `not_in_force`.\n\n**All calls are safe to repeat.** A repeated call returns the same response without changing any data. The only exceptions are sending a test event, creating an ingress key, enabling an endpoint, and recovering events. To repeat these safely, send the header `Idempotency-Key` with 1 to 255 visible ASCII characters, such as a UUID. For 24 hours, a request with the same key and the same content returns the status and body of the first one, even if the facade was restarted in between. Responses are encrypted in Redis with the root key. Keys belong to the workspace or integration in the path, and to one operation; each of these can use 5,000 keys at a time. A key that was used with other content, or by another caller, results in a 422 `idempotency_conflict`, and a request that is still in progress in a 409 `idempotency_in_progress`. For replays, the key is the id of the replay. All other calls accept the header without needing it.",
    'Changes to a paused workspace (annotated with `sluice.dev/paused`) are rejected with a 409 `workspace_paused`. This does not apply to calls that only close access: blocking, deactivating, revoking an integration, and unsubscribing.',
    'Lists are returned as `{data, nextCursor}`, with 50 items per page unless specified otherwise using `limit`. They may be stale by the latency of a watch. Any `GET` can also be sent as a `HEAD`, which returns the same status and headers without a body.',
    'Calls are limited for each caller, and for all callers of an account together, with 429 `rate_limited` once a limit has been reached on a replica. Most calls cost 1 point. Those that read or change many objects or events at once cost 5, and those that may look at thousands of them cost 10, as their descriptions say. Listing, skipping, recovering, and replaying many events cost more, as their descriptions say as well. A workspace, account, or receiving integration that is unknown or belongs to another user costs 20 more. A caller has 6,000 points per minute. An account has 30,000 by default, or `spec.limits.requestsPerMinute` of the Account. Points come back evenly. You can use the points of 10 s at once (1,000 of a caller, and 5,000 of an account), or up to 1,000 points if the limit is lower than 6,000. Calls to a workspace, or to an integration with this receiving workspace, count for its account. If the operator has set `SLUICE_TRUSTED_PROXIES`, an address (or a /64 network of IPv6) has 60,000 points per minute as well, of which each call costs 1, whether or not it has a valid token.',
    'Answers to callers with a valid token have the headers `RateLimit-Policy`, such as `"caller";q=1000;w=10, "account";q=5000;w=10` (1,000 and 5,000 points at once, and as many again in 10 s), and `RateLimit`, such as `"caller";r=990;t=1, "account";r=4990;t=1` (the points left, and the seconds until all of them are back), as specified by draft-ietf-httpapi-ratelimit-headers. Calls that have not reached an account only have the item `"caller"`. Calls to unknown paths count as well. Limits by address add `"address"` as the first item of all answers. Without these, answers sent before the token is checked, such as a 503 `overloaded`, have neither header.',
    'At most 16 calls of a caller can wait for events at the same time on each replica, using `waitSeconds` or `wait`. Any more of them receive a 429 `rate_limited`, whose `detail` contains the limit and the number of waiting calls. Calls without a time to wait are not affected. While a call waits, it looks for events every 500 ms. Each of these looks costs 1 point, and is left out if you have none.',
    'The time that the calls of an account take in Redis is limited as well, because the events of all others wait for it: to a tenth of the time of a Redis master on each replica, and what was not used in the last second. Any more wait for their turn. A read that would have to wait for more than 2 s is rejected with a 429 `rate_limited`, and so is a change that would have to wait for more than 5 s before it begins. Pages of up to 1,000 events and long ranges take the most.',
    `See [Problems](problems.md) for the format of errors. Any call may return ${codes}, as well as [\`not_found\`](problems/not_found.md) for an unknown path or [\`method_not_allowed\`](problems/method_not_allowed.md) for an unknown method.`,
    document.tags.map(({ name }) => `- [${name}](#${anchorOf(name)})`).join('\n'),
    ...document.tags.flatMap(({ name }) => renderTag(document, name)),
  ].join('\n\n');
}

/** Renders the section of a tag: all its calls, without the problems `common` to all calls. */
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

/** Renders the scope and the role that a call needs. Calls of ingress have neither. */
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
