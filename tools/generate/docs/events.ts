import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { VERSION } from '../../../src/config/version.ts';
import { type OpenApiDocument, tidySchema } from '../../../src/facade/openapi.ts';
import { createProblemResponses } from '../../../src/facade/problem-responses.ts';
import { SANDBOX_LIMITS } from '../../../src/redis/sandbox-store.ts';
import { table } from '../markdown.ts';
import { EVENT_ROUTES, type EventRoute } from './event-routes.ts';
import { renderTag } from './rest.ts';

const header = (description: string) => z.string().optional().meta({ description });

/** Headers of an event's request that ingress reads, unless the stream names others (`contextHeaders`). */
const EventHeaders = z.object({
  'webhook-id': header(
    'The event id. If this header is not set, ingress uses the id of the CloudEvent, then Idempotency-Key, and then a generated id. If you send the same id again within 24 hours, the event is a duplicate.',
  ),
  'x-sluice-event-type': header(
    'The event type. If this header is not set, ingress uses the type of the CloudEvent and then webhook-event.',
  ),
  'x-sluice-group-key': header(
    'The group key. If this header is not set, ingress uses the partitionkey of the CloudEvent. Events without a group key are not delivered to partners.',
  ),
  traceparent: header('The trace context (W3C Trace Context), which is forwarded to the partners.'),
});

/** Ingress takes any content type; these are named because client generators ignore a wildcard. */
const EVENT_BODY = {
  'application/json': { schema: { description: 'The event.' } },
  'application/cloudevents+json': {
    schema: { type: 'object' as const, description: 'A CloudEvent in structured mode.' },
  },
  'application/octet-stream': {
    schema: { type: 'string' as const, format: 'binary', description: 'The event, with any content type.' },
  },
};

const PROBLEM_RESPONSES = createProblemResponses(EVENT_ROUTES.flatMap(({ problems }) => problems));

function operationOf(route: EventRoute): ZodOpenApiOperationObject {
  const { status, description, schema } = route.answer;
  return {
    operationId: route.operation,
    tags: [route.tag],
    summary: route.summary,
    description: route.description,
    requestParams: {
      path: route.parameters,
      ...(route.query === undefined ? {} : { query: route.query }),
      ...(route.method === 'GET' ? {} : { header: EventHeaders }),
    },
    ...(route.method === 'GET' ? {} : { requestBody: { required: false, content: EVENT_BODY } }),
    responses: {
      [`${status}`]: { description, content: { 'application/json': { schema } } },
      ...PROBLEM_RESPONSES.of(route.problems),
    },
    'x-problem-codes': route.problems,
  };
}

function describeEventRoutes(): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of EVENT_ROUTES) paths[route.path] = { [route.method.toLowerCase()]: operationOf(route) };
  const created = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Sluice ingress',
        version: VERSION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        description: 'Accepts events from producers for production and for the sandbox.',
      },
      servers: [{ url: '/' }],
      security: [{ bearer: [] }, { apiKey: [] }],
      tags: [...new Set(EVENT_ROUTES.map(({ tag }) => tag))].map(name => ({ name })),
      components: {
        responses: PROBLEM_RESPONSES.components,
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'An ingress key of the workspace.' },
          apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An ingress key of the workspace.' },
        },
      },
      paths,
    },
    { override: tidySchema },
  );
  return JSON.parse(JSON.stringify(created)) as OpenApiDocument;
}

/** Renders the document that the ingress role serves. */
export function renderEventsOpenApi(): string {
  return `${JSON.stringify(describeEventRoutes(), null, 2)}\n`;
}

/** Renders docs/events.md: the same routes for readers. */
export function renderEvents(): string {
  const document = describeEventRoutes();
  return [
    '# Publishing events',
    'The OpenAPI 3.1 document is available in [events-openapi.json](events-openapi.json). The `ingress` role serves it at `GET /openapi.json` without a key, and it serves these routes on `SLUICE_INGRESS_PORT`. To authenticate, send an ingress key of the workspace as `Authorization: Bearer <key>` or as `x-api-key`. You can use the same key for the sandbox of the workspace, but you cannot use it for `/waas`.',
    'Sluice accepts [CloudEvents](cloudevents.md) in binary mode and in structured mode, and it delivers them without changes. Events with any other content type are treated as bytes. Sluice delivers the content type that you send. By default, `curl -d` sends `application/x-www-form-urlencoded`, so you should set `application/json` if you send JSON.',
    'Errors are returned as [problem documents](problems.md).',
    table(
      ['Request header', 'Description'],
      Object.entries(EventHeaders.shape).map(([name, schema]) => [
        `\`${name}\``,
        z.globalRegistry.get(schema)?.description ?? '',
      ]),
    ),
    ...document.tags.flatMap(({ name }) => renderTag(document, name, [])),
    '## Limitations of the sandbox',
    [
      'The sandbox does not call endpoints. For this reason, a run does not show how fast an endpoint responds or whether its address is allowed. Runs are not limited by `maxPerSecond` or by the circuit breaker. If an endpoint is already disabled, its events are held as in production, and the report shows this.',
      'If an attempt receives status 410, the report contains `disablesEndpoint`. The retries continue as if you had enabled the endpoint again.',
      'If the account does not have enough tokens, a run does not wait. The report shows the tokens that would be charged in production.',
      'Attempts are signed, but the report does not contain the signatures because the endpoint would accept them.',
      `A run can have up to ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries. If an event is not routed because of this limit, the reason is \`run_full\`. Within 24 hours, a workspace can create ${SANDBOX_LIMITS.runs.toLocaleString('en')} runs with up to ${SANDBOX_LIMITS.events.toLocaleString('en')} events, ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries in total.`,
      'Each dispatcher processes one run at a time and uses up to a quarter of its time for runs, because production has priority. If a dispatcher crashes, another dispatcher continues the run after ten seconds.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
