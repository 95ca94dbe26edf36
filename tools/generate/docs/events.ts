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
    'Event id, else the id of the CloudEvent, else Idempotency-Key, else a generated id. The same id within 24 h is a duplicate.',
  ),
  'x-sluice-event-type': header('Event type, else the type of the CloudEvent, else webhook-event.'),
  'x-sluice-group-key': header(
    'Group key, else the partitionkey of the CloudEvent. An event without one goes to no partner.',
  ),
  traceparent: header('Passed on to the partners (W3C Trace Context).'),
});

/** Ingress takes any content type; these are named because client generators ignore a wildcard. */
const EVENT_BODY = {
  'application/json': { schema: { description: 'The event.' } },
  'application/cloudevents+json': {
    schema: { type: 'object' as const, description: 'One CloudEvent in structured mode.' },
  },
  'application/octet-stream': {
    schema: { type: 'string' as const, format: 'binary', description: 'The event, any bytes, of any content type.' },
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
        description: 'Accepts events of producers, for production and for the sandbox.',
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
    'The OpenAPI 3.1 document is [events-openapi.json](events-openapi.json). The `ingress` role serves it at `GET /openapi.json`, without a key, and these routes on `SLUICE_INGRESS_PORT`. They need an ingress key of the workspace, as `Authorization: Bearer <key>` or as `x-api-key`. The same key opens the sandbox of the workspace, and nothing under `/waas`.',
    'Sluice accepts [CloudEvents](cloudevents.md) in binary and structured mode, and delivers them as they were sent. It treats an event of any other content type as bytes. It delivers the content type that you send: `curl -d` alone sends `application/x-www-form-urlencoded`, so set `application/json` if you send JSON.',
    'Errors are [problem documents](problems.md).',
    table(
      ['Header of an event', 'Meaning'],
      Object.entries(EventHeaders.shape).map(([name, schema]) => [
        `\`${name}\``,
        z.globalRegistry.get(schema)?.description ?? '',
      ]),
    ),
    ...document.tags.flatMap(({ name }) => renderTag(document, name, [])),
    '## What the sandbox leaves out',
    [
      'No endpoint is called. So a run does not show how long an endpoint takes, or whether its address may be called. `maxPerSecond` and the breaker do not slow a run. An endpoint that is already disabled holds its events as in production, and the report shows it.',
      'After an answer of 410 the report has `disablesEndpoint`, and the retries continue as if the endpoint had been enabled again.',
      'A run does not wait if the account has no tokens. The report shows what production would charge.',
      'Attempts are signed, but the report hides the signatures: the endpoint would accept them.',
      `A run takes ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries; an event that is not routed because of this limit has the reason \`run_full\`. Within 24 hours a workspace can create ${SANDBOX_LIMITS.runs.toLocaleString('en')} runs, with ${SANDBOX_LIMITS.events.toLocaleString('en')} events of ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries.`,
      'Dispatchers drive the runs, one at a time each, with a quarter of their time: production has priority. If a dispatcher crashes, another one continues its run after ten seconds.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
