import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { VERSION } from '../../../src/config/version.ts';
import { type OpenApiDocument, tidySchema } from '../../../src/facade/openapi.ts';
import { createProblemResponses, REFUSED_LIMIT_HEADERS } from '../../../src/facade/problem-responses.ts';
import { SANDBOX_LIMITS } from '../../../src/part/sandbox/sandbox-store.ts';
import { table } from '../markdown.ts';
import { EVENT_ROUTES, type EventRoute } from './event-routes.ts';
import { renderTag } from './rest.ts';

const header = (description: string) => z.string().optional().meta({ description });

/** Request headers for an event, which ingress reads unless the stream specifies others (`contextHeaders`). */
const EventHeaders = z.object({
  'webhook-id': header(
    'Event id. Defaults to the CloudEvent id, the Idempotency-Key, or a generated id. If you send the same id again within 24 hours, the event is a duplicate.',
  ),
  'x-sluice-event-type': header('Event type. Defaults to the CloudEvent type or webhook-event.'),
  'x-sluice-group-key': header(
    'Group key. Falls back to the CloudEvent partitionkey. Note that events without a group key are not delivered to any partner.',
  ),
  traceparent: header('W3C Trace Context, forwarded to partners.'),
});

/** Ingress takes any content type; these are named because client generators ignore a wildcard. */
const EVENT_BODY = {
  'application/json': { schema: { description: 'The event itself.' } },
  'application/cloudevents+json': {
    schema: { type: 'object' as const, description: 'CloudEvent in structured mode.' },
  },
  'application/octet-stream': {
    schema: { type: 'string' as const, format: 'binary', description: 'The event itself, using any content type.' },
  },
};

const PROBLEM_RESPONSES = createProblemResponses(
  EVENT_ROUTES.flatMap(({ problems }) => problems),
  REFUSED_LIMIT_HEADERS,
);

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
        description: 'API for publishing events, both for production and for the sandbox.',
      },
      servers: [{ url: '/' }],
      security: [{ bearer: [] }, { apiKey: [] }],
      tags: [...new Set(EVENT_ROUTES.map(({ tag }) => tag))].map(name => ({ name })),
      components: {
        responses: PROBLEM_RESPONSES.components,
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'Ingress key belonging to the workspace.' },
          apiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'x-api-key',
            description: 'Ingress key belonging to the workspace.',
          },
        },
      },
      paths,
    },
    { override: tidySchema },
  );
  return JSON.parse(JSON.stringify(created)) as OpenApiDocument;
}

/** Renders the document served by the ingress role. */
export function renderEventsOpenApi(): string {
  return `${JSON.stringify(describeEventRoutes(), null, 2)}\n`;
}

/** Renders docs/events.md: the same routes for readers. */
export function renderEvents(): string {
  const document = describeEventRoutes();
  return [
    '# Publishing events',
    "These routes are served by the `ingress` role on `SLUICE_INGRESS_PORT`. The OpenAPI 3.1 document is available in [events-openapi.json](events-openapi.json), and at `GET /openapi.json`, which does not require a key. For all other requests, you need to specify an ingress key of the workspace, using either `Authorization: Bearer <key>` or `x-api-key`. You can use the same key for the workspace's sandbox, but not for `/waas`. To create a key, use a [Secret](quickstart.md#4-publish-an-event) or the [REST API](rest.md#create-an-ingress-key).",
    '[CloudEvents](cloudevents.md) are supported in both binary and structured mode, and are delivered as they are. Events with any other content type are treated as binary data and are delivered using the same content type. Note that `curl -d` uses `application/x-www-form-urlencoded` by default, so be sure to specify `application/json` when sending JSON.',
    'The operator can limit the number of events per second for an address, for a key, for a workspace, and for all workspaces of an account ([Limits](limits.md#publishing)). An event uses one point of each limit for every 16 KiB of its body (rounded up), so the largest event (256 KiB) uses 16 points. When a limit has been reached, events are rejected with a 429 `rate_limited`. If you send `Content-Length`, they are rejected before reading the body. The headers `RateLimit-Policy`, such as `"key";q=500;w=1` (500 points in 1 s), and `RateLimit`, such as `"key";r=0;t=1` (no points left, all points available in 1 s), describe the limit that was reached. Wait for the number of seconds in `Retry-After` and then send the event again with the same id.',
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
      "Since endpoints are never called, a run can't be used to test the response time of an endpoint, or whether its address is allowed. In addition, the sandbox does not use `maxPerSecond` or the circuit breaker. Events for a disabled endpoint are held in the same way as in production, which is indicated in the report.",
      'A run uses a snapshot of the gate, subscriptions, and endpoints, which is read from production when routing events or making attempts. If you make a change while a run is in progress, the change may only affect some of its events.',
      'Status 410 is reported as `disablesEndpoint`. After that, retries continue as if you had enabled the endpoint again.',
      'A run never has to wait for tokens. Instead, the report contains the number of tokens that would be charged in production.',
      'Attempts are signed, but the report does not include the signatures, because they would be accepted by the endpoint.',
      `Each run is limited to ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries. If an event isn't routed because of this limit, the reason is \`run_full\`. Over the course of 24 hours, a workspace may create ${SANDBOX_LIMITS.runs.toLocaleString('en')} runs with a combined maximum of ${SANDBOX_LIMITS.events.toLocaleString('en')} events, ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB, and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries.`,
      'Production has a higher priority: dispatchers process one run at a time, and spend up to a quarter of their time on it. If a dispatcher crashes, another dispatcher continues the run after ten seconds.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
