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

/** A node of JSON Schema, as far as the page says something about it. */
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

/** docs/openapi.json: the document that the facade serves. */
export function renderOpenApi(): string {
  return `${JSON.stringify(describeRoutes(ROUTES, VERSION), null, 2)}\n`;
}

/** docs/rest.md: every call of `/waas`, by tag. */
export function renderRest(): string {
  const document = describeRoutes(ROUTES, VERSION);
  const codes = OF_EVERY_CALL.map(code => `[\`${code}\`](problems/${code}.md)`).join(', ');
  return [
    '# REST interface',
    'For programs: [openapi.json](openapi.json), OpenAPI 3.1, also at `GET /openapi.json` of the facade; `GET /docs` shows it in a browser. Both need no token. How events come in, and the sandbox, which use ingress keys: [events.md](events.md).',
    'Every call of `/waas` needs a bearer token of a configured OIDC issuer, and acts for what the caller owns: by the owners of the Workspace that the path or the body names, and of its Account. What is not yours and what does not exist is answered in the same words (403).',
    'Bodies are JSON in UTF-8, at most 16 KiB, and 1 MiB where a call takes a schema or a list: a stream, a subscription, events to acknowledge. A body has at most 5,000 fields and items, a query at most 64 parameters. Unknown fields are refused, types are not converted. What is answered with success is in force: a call that changes something waits for the controller, at most 5 s, and answers 503 `not_in_force` if that was not enough. **Every call may be repeated as it is**: it changes nothing the second time and answers the same. Three do more each time: one more test event is sent, an ingress key without an `id` is made anew, and enabling an endpoint counts from then on.',
    'While a workspace is paused (annotation `sluice.dev/paused`), calls that change something of it are refused (409 `workspace_paused`). Calls that only close work and take effect at once: to block, to deactivate, to revoke an integration, to unsubscribe.',
    'Lists are `{data, nextCursor}`, 50 items unless `limit` says otherwise, and lag by the latency of a watch.',
    `Whatever is refused is answered with a [problem document](problems.md). Any call may be answered ${codes}; a path or a method that is not there [\`not_found\`](problems/not_found.md), [\`method_not_allowed\`](problems/method_not_allowed.md).`,
    document.tags.map(({ name }) => `- [${name}](#${anchorOf(name)})`).join('\n'),
    ...document.tags.flatMap(({ name }) => renderTag(document, name)),
  ].join('\n\n');
}

/** One section: every call of a tag. Problems that are `common` to all calls are told elsewhere. */
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
  const problems = Object.values(operation.responses).flatMap(response => response['x-problem-codes'] ?? []);
  const own = problems.filter(code => !common.includes(code));
  return [
    `### ${operation.summary}`,
    `\`${line}\`${operation.requestBody?.required === false ? ', the body may be left out' : ''}`,
    ...(operation.description === undefined ? [] : [escapeMarkup(operation.description)]),
    ...(parameters.length === 0 ? [] : [table(['Parameter', 'Type', 'Meaning'], parameters.map(parameterRow))]),
    ...(body === undefined ? [] : renderBody(document, body.schema, body.example)),
    ...Object.entries(operation.responses)
      .filter(([status]) => Number(status) < 400)
      .flatMap(([status, response]) => renderAnswer(document, status, response)),
    `Problems: ${own.map(code => `${PROBLEMS[code].status} [\`${code}\`](problems/${code}.md)`).join(', ')}.`,
  ];
}

function parameterRow({ in: place, name, required, description, schema }: OpenApiParameter): Row {
  return [`\`${name}\` (${place})`, typeOf(schema, required === true), description ?? ''];
}

function renderBody(document: OpenApiDocument, schema: Schema, example: unknown): string[] {
  const fields = fieldsOf(document, '', schema);
  // Of a body that may be anything, the description of the call says what there is to say.
  if (fields.length === 0) return [];
  const shown = example === undefined ? [] : [`\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``];
  return [table(['Body', 'Type', 'Meaning'], fields), ...shown];
}

function renderAnswer(document: OpenApiDocument, status: string, { description, content }: OpenApiResponse): string[] {
  const schema = content?.['application/json']?.schema;
  const said = `**${status}** ${escapeMarkup(description)}`;
  return schema === undefined ? [said] : [said, table(['Answer', 'Type', 'Meaning'], fieldsOf(document, '', schema))];
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

/** What a value may be, besides null. */
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
