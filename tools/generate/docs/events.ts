import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { VERSION } from '../../../src/config/version.ts';
import { failuresOf, type OpenApiDocument, tidySchema } from '../../../src/facade/openapi.ts';
import { SANDBOX_LIMITS } from '../../../src/redis/sandbox-store.ts';
import { table } from '../markdown.ts';
import { EVENT_ROUTES, type EventRoute } from './event-routes.ts';
import { renderTag } from './rest.ts';

const header = (description: string) => z.string().optional().meta({ description });

/** What is read of an event's request where the stream says nothing else (`contextHeaders`). */
const EventHeaders = z.object({
  'webhook-id': header(
    'Event id, else the id of the CloudEvent, else Idempotency-Key, else one is made. Known again for 24 h.',
  ),
  'x-sluice-event-type': header('Event type, else the type of the CloudEvent, else webhook-event.'),
  'x-sluice-group-key': header(
    'Group key, else the partitionkey of the CloudEvent. Without one the event goes to nobody.',
  ),
  traceparent: header('Passed on to the partners (W3C Trace Context).'),
});

/** Any content type is taken; generators make nothing of a wildcard. */
const EVENT_BODY = {
  'application/json': { schema: { description: 'The event.' } },
  'application/cloudevents+json': {
    schema: { type: 'object' as const, description: 'One CloudEvent in structured mode.' },
  },
  'application/octet-stream': {
    schema: { type: 'string' as const, format: 'binary', description: 'The event, any bytes, of any content type.' },
  },
};

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
    responses: Object.fromEntries([
      [`${status}`, { description, content: { 'application/json': { schema } } }],
      ...failuresOf(route.problems),
    ]) as ZodOpenApiOperationObject['responses'],
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
        description: 'Takes the events of producers, for production and for the sandbox.',
      },
      servers: [{ url: '/' }],
      security: [{ bearer: [] }, { apiKey: [] }],
      tags: [...new Set(EVENT_ROUTES.map(({ tag }) => tag))].map(name => ({ name })),
      components: {
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

/** docs/events-openapi.json: the routes of the ingress role. */
export function renderEventsOpenApi(): string {
  return `${JSON.stringify(describeEventRoutes(), null, 2)}\n`;
}

/** docs/events.md: the same for people. */
export function renderEvents(): string {
  const document = describeEventRoutes();
  return [
    '# Events on their way in',
    'For programs: [events-openapi.json](events-openapi.json), OpenAPI 3.1. The `ingress` role serves these routes on `SLUICE_INGRESS_PORT`; they need an ingress key of the workspace, as `Authorization: Bearer <key>` or as `x-api-key`. The same key opens the sandbox of the workspace; it opens nothing under `/waas`.',
    'Sluice takes [CloudEvents](cloudevents.md) in binary and in structured mode, and delivers them as they were sent. An event of any other content type is taken as bytes. The content type is delivered as it was sent: `curl -d` alone sends `application/x-www-form-urlencoded`, so name `application/json` where you send JSON.',
    'Whatever is refused is answered with a [problem document](problems.md).',
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
      'Nobody is called, so it tells nothing of an endpoint: not how long it takes, not whether its address may be called. `maxPerSecond` and the pauses that follow many failures do not slow a run. Whether an endpoint is disabled already is told, and holds its events as in production.',
      'An answer of 410 is shown (`disablesEndpoint`), and the retries go on, as after the endpoint was enabled again.',
      'An account without tokens does not make a run wait: what it would be charged is told.',
      'Signatures are made and not shown: they would be good for the endpoint.',
      `A run takes ${SANDBOX_LIMITS.eventsOfRun.toLocaleString('en')} events and ${SANDBOX_LIMITS.deliveriesOfRun.toLocaleString('en')} deliveries; what is not routed for that says \`run_full\`. All runs that a workspace made within 24 hours may be ${SANDBOX_LIMITS.runs.toLocaleString('en')}, with ${SANDBOX_LIMITS.events.toLocaleString('en')} events of ${SANDBOX_LIMITS.bytes / 1024 ** 2} MiB and ${SANDBOX_LIMITS.deliveries.toLocaleString('en')} deliveries.`,
      'Dispatchers drive the runs, one at a time each and with a quarter of their time, so that production goes first; when one dies, another goes on after ten seconds.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
  ].join('\n\n');
}
