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

/** Headers of an event's request that ingress reads, unless the stream names others (`contextHeaders`). */
const EventHeaders = z.object({
  'webhook-id': header(
    'Event id. Falls back to the CloudEvent id, then Idempotency-Key, and finally a generated id. Sending the same id again within 24 hours results in a duplicate.',
  ),
  'x-sluice-event-type': header('Event type. Falls back to the CloudEvent type, then webhook-event.'),
  'x-sluice-group-key': header(
    'Group key. Falls back to the CloudEvent partitionkey. Note that events without a group key will not be delivered to partners.',
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

/** Renders the document that the ingress role serves. */
export function renderEventsOpenApi(): string {
  return `${JSON.stringify(describeEventRoutes(), null, 2)}\n`;
}

/** Renders docs/events.md: the same routes for readers. */
export function renderEvents(): string {
  const document = describeEventRoutes();
  return [
    '# Publishing events',
    "These routes are served by the `ingress` role on `SLUICE_INGRESS_PORT`. You can find the OpenAPI 3.1 document in [events-openapi.json](events-openapi.json), or at `GET /openapi.json`, which does not require a key. All other requests must be authenticated using one of the workspace's ingress keys, passed as either `Authorization: Bearer <key>` or `x-api-key`. The same key also works for the workspace's sandbox but not for `/waas`. Create one as a [Secret](quickstart.md#4-publish-an-event) or through the [REST API](rest.md#create-an-ingress-key).",
    'Both binary and structured mode [CloudEvents](cloudevents.md) are supported, and will be delivered as is. Events with any other content type are treated as plain bytes and delivered using the content type you provide. Note that `curl -d` uses `application/x-www-form-urlencoded` by default, so be sure to specify `application/json` when sending JSON.',
    'The operator can limit the events per second from an address, with a key, of a workspace, and of all workspaces of an account ([Limits](limits.md#publishing)). An event costs one point of each limit for each started 16 KiB of its body, so the largest event (256 KiB) costs 16. Events beyond a limit are rejected with a 429 `rate_limited`, before their body is read if you send `Content-Length`. Its headers `RateLimit-Policy`, such as `"key";q=500;w=1` (500 points in 1 s), and `RateLimit`, such as `"key";r=0;t=1` (none left, all of them back in 1 s), describe the limit that was reached. Wait for the number of seconds in `Retry-After`, and then send the event again with the same id.',
    'Errors are returned in the form of [problem documents](problems.md).',
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
      "Since endpoints are never called, a run can't tell you how quickly an endpoint responds or whether its address is allowed. It also isn't limited by `maxPerSecond` or by the circuit breaker. Events for endpoints that have already been disabled are held as they would be in production, which is indicated in the report.",
      'A run uses a snapshot of the gate, subscriptions and endpoints, which it reads from production whenever it routes events or makes attempts. A change that you make while a run is being processed may therefore take effect for some of its events only.',
      'Status 410 is reported as `disablesEndpoint`, after which retries continue as though you had enabled the endpoint again.',
      'Runs never wait because of insufficient tokens. Instead, the report shows how many tokens would be charged in production.',
      'Although attempts are signed, their signatures are left out of the report as they would be accepted by the endpoint.',
      `Each run is limited to ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries. Events that aren't routed because of this are given \`run_full\` as their reason. Over the course of 24 hours, a workspace may create ${SANDBOX_LIMITS.runs.toLocaleString('en')} runs with a combined maximum of ${SANDBOX_LIMITS.events.toLocaleString('en')} events, ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB, and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries.`,
      'Production takes priority: dispatchers only process a single run at a time, and spend no more than a quarter of their time doing so. Should a dispatcher crash, the run will be continued by another one after ten seconds.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
