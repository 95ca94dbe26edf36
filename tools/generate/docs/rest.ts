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

const bullets = (lines: readonly string[]) => lines.map(line => `- ${line}`).join('\n');

const PRICES = [
  '**Most calls** cost 1 point. Calls that read or change many objects or events cost 5 points. Calls that may need to read thousands of them cost 10 points. Listing, skipping, recovering, and replaying many events costs more. You can find the price in the description of each call.',
  '**Bodies**: A call costs at least 1 point for every 128 KiB of its body. A body without `Content-Length` costs as much as the largest body that the call accepts.',
  '**Unknown ids**: A call to a workspace, account, or receiving integration that is unknown or belongs to somebody else costs 20 more points. Each unknown stream key, and each unknown id of a package, stream, integration, or subscription, also costs 20 more points.',
];

/** Renders docs/rest.md: every call of `/waas`, by tag. */
export function renderRest(): string {
  const document = describeRoutes(ROUTES, VERSION);
  const codes = OF_EVERY_CALL.map(code => `[\`${code}\`](problems/${code}.md)`).join(', ');
  return [
    '# REST interface',
    'Use this API if you do not have access to Kubernetes. Each call under `/waas` reads or writes custom resources. A successful response means that your change is in force. The facade serves this reference as a web page at `GET /docs` and as an OpenAPI 3.1 document at `GET /openapi.json` ([openapi.json](openapi.json)). You can open both without a token. To see the calls of a partner in order, read [For partners](partners.md). To publish events, see [Events](events.md).',
    '## Access',
    'To access the API, send an access token of a configured OIDC issuer as `Authorization: Bearer <token>`. You also need to be an owner of the Workspace in the path or body (or of its Account) with the role that the call requires: Viewers can read, Admins can change everything except for members, and Owners can change members too. If the workspace, account, or receiving integration belongs to somebody else or does not exist, the call fails with a 403 `forbidden`. If another id in the path does not exist, it fails with a 404.',
    'If the operator has set `SLUICE_OIDC_REQUIRE_SCOPES`, your token needs the scope of the call (see [Identity providers](identity-providers.md)). Tokens that are bound to a key or a certificate (`cnf`) are rejected.',
    '## Requests',
    bullets([
      '**Bodies** are JSON (UTF-8) of up to 16 KiB (1 MiB for calls that accept a schema or a list). A body can have 5,000 fields and items. Unknown fields are rejected and types are not converted. If an object contains a field more than once, the last value is used. Do not send `Content-Encoding` because compressed bodies are rejected with a 415 `unsupported_media_type`.',
      '**Paths** can have 8,192 characters, including the query, which can have 64 parameters.',
      '**Lists** are returned as `{data, nextCursor}`. By default, a page has 50 items. To change this, set `limit`. A cursor is only valid for the list that has returned it. You can change `limit` and filters such as `state` and `status` between two pages.',
      '**Reads** can be slightly out of date (by the latency of a watch), for example after a change using another replica or `kubectl`. You can always retrieve an object that a call has just created.',
      '**HEAD**: You can send any `GET` request as a `HEAD` request, which returns the same status and headers.',
      '**Changes**: A call waits up to 5 s until its change is in force. After that, it responds with a 503 `not_in_force`. You can then repeat the call.',
      '**Fields with several managers**: If a change affects a field that another field manager owns (such as Argo CD or kubectl), the call fails with a 409 `field_managed`. `detail` names the manager (see [GitOps](gitops.md#git-and-rest)).',
      '**Paused workspaces** (`sluice.dev/paused`): Changes are rejected with a 409 `workspace_paused` except for calls that close access: blocking, deactivating, revoking an integration, unsubscribing, and deleting an ingress key.',
    ]),
    '## Repeating a call',
    '**You can safely repeat a call**, with four exceptions. The repeated call succeeds again and changes nothing. The response describes the repeated call. For example, skipping events again returns `skipped: 0`, and subscribing again returns a 200 instead of a 201. The exceptions are sending a test event, creating an ingress key, enabling an endpoint, and recovering events. To repeat these calls safely, send an `Idempotency-Key` header with 1 to 255 visible ASCII characters (such as a UUID):',
    bullets([
      'For 24 hours, a request with the same key and content returns the status and body of the first response, even after a restart of the facade. Responses are stored in Redis and encrypted with the root key.',
      'A key is valid for one operation and for the workspace or integration in the path. Within 24 hours, you can use 5,000 keys for each workspace or integration, and 20,000 for all of those that belong to the same account.',
      'If the key was used with different content or by another caller, the call fails with a 422 `idempotency_conflict`. If the first request is still in progress, it fails with a 409 `idempotency_in_progress`.',
      '**Replays**: The key identifies the replay. If it consists of 1 to 64 letters, digits, `_`, and `-`, it is also the id of the replay. For any other key, the id is derived from the key.',
      'All other calls ignore the key because you can always repeat them. Any call rejects a malformed key.',
    ]),
    '## Rate limits',
    'Each replica limits the points that you can use. Beyond a limit, calls fail with a 429 `rate_limited`:',
    table(
      ['Limit on', 'Points per minute', 'In a burst'],
      [
        ['A caller', '6,000', '1,000'],
        [
          'All callers of an account',
          '30,000, or `spec.limits.requestsPerMinute`',
          'The points of 10 s (1,000 if the limit is lower than 6,000)',
        ],
        [
          'An address (a /64 network for IPv6), if the operator has set `SLUICE_TRUSTED_PROXIES`',
          '60,000 (1 for each call, whether or not its token is valid)',
          'The points of 10 s',
        ],
      ],
    ),
    'A call has this price:',
    bullets(PRICES),
    "Calls count for the account of the workspace (or of the integration's receiving workspace). Points are added back at a constant rate.",
    'If your token is valid, you can find your limits in two headers of the response (as in draft-ietf-httpapi-ratelimit-headers):',
    table(
      ['Header', 'Example', 'Meaning'],
      [
        [
          '`RateLimit-Policy`',
          '`"caller";q=1000;w=10, "account";q=5000;w=10`',
          'Bursts of 1,000 and 5,000 points. They are available again after 10 s.',
        ],
        [
          '`RateLimit`',
          '`"caller";r=990;t=1, "account";r=4990;t=1`',
          'The remaining points, and the number of seconds until all points are available again.',
        ],
      ],
    ),
    'If a call has not reached an account, the headers only contain `"caller"`. Calls to unknown paths count too. With address limits, `"address"` comes first in all responses. Without address limits, responses sent before the token is checked (such as a 503 `overloaded`) do not have these headers.',
    'Three more limits apply on each replica:',
    bullets([
      '**Turns**: The calls of accounts take turns. An account can have four calls in progress (without those that wait for events or have taken longer than 25 ms). Up to 512 more are queued for up to 5 s. All others are rejected with a 429 `rate_limited` and have no effect. Calls that only close access have their own turns and are never rejected for this reason. If more than 512 of them are queued, the replica can close the connections of the others to make room for new ones. Their calls are still performed.',
      '**Waiting for events** (`waitSeconds` or `wait`): You can have 16 calls waiting at the same time, and all callers of an account together can have 512. More are rejected with a 429 `rate_limited`. The facade checks for events every 500 ms, which costs 1 point. If you have no points left, it skips the check. If the replica stops, the call returns early without events. If the subscription is deleted or you lose access, the call fails like a new call, with a 404 or 403.',
      '**Time of Redis**: An account can use 10 % of the time of a Redis master plus any time that was unused in the last second. More calls are queued because they would delay the events of others. If a call would wait too long (2 s for reads, 5 s before a change begins), it is rejected with a 429 `rate_limited`. Pages of up to 1,000 events and long ranges take the most time.',
    ]),
    '## Errors',
    `For the error format, see [Problems](problems.md). Any call may return ${codes} as well as [\`not_found\`](problems/not_found.md) for an unknown path or [\`method_not_allowed\`](problems/method_not_allowed.md) for an unknown method.`,
    '## Calls',
    document.tags.map(({ name }) => `- [${name}](#${anchorOf(name)})`).join('\n'),
    ...document.tags.flatMap(tag => renderTag(document, tag)),
  ].join('\n\n');
}

/** Renders the section of a tag with all of its calls, without the problems that are `common` to all calls. */
export function renderTag(
  document: OpenApiDocument,
  tag: OpenApiDocument['tags'][number],
  common = OF_EVERY_CALL,
): string[] {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.tags.includes(tag.name))
      .map(([method, operation]) => ({ line: `${method.toUpperCase()} ${path}`, operation })),
  );
  return [
    `## ${tag.name}`,
    tag.description,
    ...operations.flatMap(({ line, operation }) => renderOperation(document, line, operation, common)),
  ];
}

function renderOperation(
  document: OpenApiDocument,
  line: string,
  operation: OpenApiOperation,
  common: readonly ProblemCode[],
): string[] {
  // The introductions describe all other headers.
  const parameters = (operation.parameters ?? []).filter(
    ({ in: place, name }) => place !== 'header' || name === 'If-Match',
  );
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
  const { description } = resolve(document, schema);
  return [
    ...(description === undefined ? [] : [escapeMarkup(description)]),
    table(['Body', 'Type', 'Description'], fields),
    ...shown,
  ];
}

function renderAnswer(
  document: OpenApiDocument,
  status: string,
  { description = '', content }: OpenApiResponse,
): string[] {
  const schema = content?.['application/json']?.schema;
  const text = `**${status}** ${escapeMarkup(description)}`;
  return schema === undefined
    ? [text]
    : [text, table(['Response', 'Type', 'Description'], fieldsOf(document, '', schema))];
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
