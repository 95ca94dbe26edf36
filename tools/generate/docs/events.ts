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
    "Event id. Falls back to the CloudEvent's id, then Idempotency-Key, then a generated id. Sending the same id again within 24 hours is treated as a duplicate.",
  ),
  'x-sluice-event-type': header("Event type. Falls back to the CloudEvent's type, then webhook-event."),
  'x-sluice-group-key': header(
    "Group key. Falls back to the CloudEvent's partitionkey. Events without a group key won't be delivered to any partner.",
  ),
  traceparent: header('W3C Trace Context to be forwarded to partners.'),
});

/** Ingress takes any content type; these are named because client generators ignore a wildcard. */
const EVENT_BODY = {
  'application/json': { schema: { description: 'The event.' } },
  'application/cloudevents+json': {
    schema: { type: 'object' as const, description: 'A CloudEvent in structured mode.' },
  },
  'application/octet-stream': {
    schema: { type: 'string' as const, format: 'binary', description: 'An event of any content type.' },
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
        description: 'Accepts events from producers, both for production and the sandbox.',
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
    "All routes on this page are served by the `ingress` role on `SLUICE_INGRESS_PORT`. You can find the OpenAPI 3.1 document in [events-openapi.json](events-openapi.json) or at `GET /openapi.json`, which doesn't require a key. For all other requests, provide one of the workspace's ingress keys as either `Authorization: Bearer <key>` or `x-api-key`. The key also works for the workspace's sandbox, but not for `/waas`.",
    '[CloudEvents](cloudevents.md) are supported in both binary and structured mode, and will be delivered unchanged. Any other content type is treated as plain bytes. Partners receive the content type you send, so make sure to set `application/json` when sending JSON, because `curl -d` defaults to `application/x-www-form-urlencoded`.',
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
      "Since endpoints aren't called, a run can't tell you how fast an endpoint responds or whether its address is allowed. Neither `maxPerSecond` nor the circuit breaker apply. Events for an endpoint that is already disabled are held as they would be in production, and reported as such.",
      'A 410 is reported as `disablesEndpoint`, with retries continuing as if the endpoint had been enabled again.',
      'Runs never wait for tokens. The report shows how many would have been charged in production.',
      "Attempts are signed, but you won't find the signatures in the report, because they would be accepted by the endpoint.",
      `Runs are limited to ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries. Any event not routed because of this limit has the reason \`run_full\`. The limit per workspace and 24 hours is ${SANDBOX_LIMITS.runs.toLocaleString('en')} runs with up to ${SANDBOX_LIMITS.events.toLocaleString('en')} events, ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries in total.`,
      'Production always has priority. Dispatchers process one run at a time, spending no more than a quarter of their time on runs. If a dispatcher crashes, the run will be continued by another one after ten seconds.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
