import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { VERSION } from '../../../src/config/version.ts';
import { type OpenApiDocument, tidySchema } from '../../../src/facade/openapi.ts';
import { createProblemResponses, REFUSED_LIMIT_HEADERS } from '../../../src/facade/problem-responses.ts';
import { SANDBOX_LIMITS } from '../../../src/part/sandbox/sandbox-store.ts';
import { table } from '../markdown.ts';
import { EVENT_ROUTES, EVENT_TAGS, type EventRoute } from './event-routes.ts';
import { renderTag } from './rest.ts';

const header = (description: string) => z.string().optional().meta({ description });

/** The request headers for an event that ingress reads unless the stream specifies other headers (`contextHeaders`). */
const EventHeaders = z.object({
  'webhook-id': header(
    'Event id. Defaults to the CloudEvent id, the Idempotency-Key, or a generated id. If you send the same id again within 24 hours, the event is a duplicate.',
  ),
  'x-sluice-event-type': header('Event type. Defaults to the CloudEvent type or webhook-event.'),
  'x-sluice-group-key': header(
    'Group key. Defaults to the CloudEvent partitionkey. A stream can read other headers instead, using contextHeaders. Events without a group key are not delivered to any partner.',
  ),
  traceparent: header('W3C Trace Context, forwarded to partners.'),
});

/** The content types in the document. Ingress accepts any content type, but client generators ignore a wildcard. */
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
      tags: [...new Set(EVENT_ROUTES.map(({ tag }) => tag))].map(name => ({ name, description: EVENT_TAGS[name] })),
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

/** Renders docs/events.md, which describes the same routes. */
export function renderEvents(): string {
  const document = describeEventRoutes();
  return [
    '# Publishing events',
    'Use this page to publish events and to test them in the sandbox before any partner receives them. To publish an event, send it to ingress together with an ingress key. You can find the path in `status.ingressPath` of the CatalogStream or in `ingressPath` of the REST API. The operator gives you the host:',
    '```http\nPOST /events/<workspace id>/orders HTTP/1.1\nAuthorization: Bearer <ingress key>\nContent-Type: application/json\nwebhook-id: order-1001\nx-sluice-event-type: order.created\nx-sluice-group-key: customer-42\n\n{"order": 1001}\n```',
    'A `202` response means that the event is stored on disk. If you receive a 429, a 500, a 503, or no response at all, resend the event using the same id. Sluice then stores it only once. All errors are [problem documents](problems.md). To find out what happened to an event, see [Routing](routing.md#why-an-event-did-not-arrive).',
    [
      '**Ingress key**: You can send it as `Authorization: Bearer <key>` or as `x-api-key`. The key is valid for all streams of the workspace and for the sandbox. For `/waas`, you need an access token instead. To create one, use a [Secret](quickstart.md#4-publish-an-event) or the [REST API](rest.md#create-an-ingress-key).',
      '**Body**: You can use any content type. [CloudEvents](cloudevents.md) can use binary or structured mode. All other bodies are treated as binary data and delivered with the content type that you send. If you send JSON using `curl -d`, specify `application/json` because curl sends `application/x-www-form-urlencoded` by default.',
      '**OpenAPI**: The OpenAPI 3.1 document is [events-openapi.json](events-openapi.json). You can also get it from ingress at `GET /openapi.json` without a key.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    table(
      ['Request header', 'Description'],
      Object.entries(EventHeaders.shape).map(([name, schema]) => [
        `\`${name}\``,
        z.globalRegistry.get(schema)?.description ?? '',
      ]),
    ),
    '## Rate limits',
    'Operators can limit the number of events per second for an address, a key, a workspace, and an account ([Limits](limits.md#publishing)). An event uses one point of each limit for every 16 KiB of its body (rounded up). As a result, the largest event (256 KiB) uses 16 points. Beyond a limit, ingress rejects events with a 429 `rate_limited`. If you send `Content-Length`, it rejects them before it reads their body. These headers describe the limit:',
    table(
      ['Response header', 'Example', 'Meaning'],
      [
        ['`RateLimit-Policy`', '`"key";q=500;w=1`', 'The key has 500 points per second.'],
        ['`RateLimit`', '`"key";r=0;t=1`', 'No points are left. All of them are available again in one second.'],
        ['`Retry-After`', '`1`', 'Send the event again after this number of seconds using the same id.'],
      ],
    ),
    ...document.tags.flatMap(tag => renderTag(document, tag, [])),
    '## Limitations of the sandbox',
    [
      'The sandbox does not call endpoints, so it cannot show how fast an endpoint responds or whether its address is allowed. The sandbox also ignores `maxPerSecond` and the circuit breaker. Events for a disabled endpoint are held as in production. The report contains the reason in `heldBy`.',
      'A run reads the gate, subscriptions, and endpoints from production when it routes events or makes attempts. If you change one of them while a run is in progress, this change may only affect some of its events.',
      'Status 410 is reported as `disablesEndpoint`. After that, retries continue as if you had enabled the endpoint again.',
      'A run never waits for tokens. If your account has no tokens left, events are delivered in the sandbox but wait in production (`insufficient_tokens`). You can find the number of tokens that production would charge in the report.',
      'Attempts are signed. The report does not include the signatures because an endpoint would accept them.',
      `Each run is limited to ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries. An event that isn't routed because of this limit has the \`run_full\` reason. In 24 hours, a workspace can create ${SANDBOX_LIMITS.runs.toLocaleString('en')} runs with a combined maximum of ${SANDBOX_LIMITS.events.toLocaleString('en')} events, ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB, and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries.`,
      'Production has priority. A dispatcher processes one run at a time using up to a quarter of its time. If a dispatcher crashes, another one continues the run after ten seconds. An ingress replica adds four events of a workspace at a time. It also creates one report at a time and waits for three times as long before the next one. If your request would wait for more than 5 seconds, or if 512 events or 16 reports are waiting, it is rejected with a 429.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
