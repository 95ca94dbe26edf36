import { z } from 'zod';
import { queryInteger } from './query-integer.ts';

/** ID of a run, chosen by the caller. */
export const RunId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, ".", "_" and "-"');

/** Query parameters of the sandbox route. Any others are rejected. */
export const SandboxQuery = z.object({
  sb_fail_code: queryInteger(/^[345]\d\d$/, 'must be a number from 300 to 599', {
    minimum: 300,
    maximum: 599,
    description:
      'The status of failed attempts, from 300 to 599. The first sb_fail_count attempts fail with this status. If sb_fail_count is not set, all attempts fail.',
  }),
  sb_fail_count: queryInteger(/^(\d|1\d|20)$/, 'must be a number from 0 to 20', {
    minimum: 0,
    maximum: 20,
    description:
      'The number of attempts that fail before an attempt succeeds, from 0 to 20. Failed attempts have the status in sb_fail_code, which defaults to 500.',
  }),
  runId: RunId.optional().meta({
    description:
      'The id of the run to add the event to. The first event creates the run. If this parameter is not set, a new run is created and the response contains its id.',
  }),
});

/** Query parameters for a run's report. */
export const RunReportQuery = z.object({
  limit: queryInteger(/^([1-9]\d?|1\d\d|2[0-4]\d|250)$/, 'must be a number from 1 to 250', {
    minimum: 1,
    maximum: 250,
    description: 'The maximum number of events in the response, from 1 to 250. Defaults to 50.',
  }),
  cursor: z
    .string()
    .regex(/^[0-9a-z]{15}\.[a-z0-9-]{1,63}$/, 'must be the nextCursor of the previous page')
    .optional()
    .meta({
      description: 'The nextCursor of the previous page. If this parameter is not set, the first page is returned.',
    }),
});

/** Response of the production route. */
export const AcceptedEvent = z
  .object({
    id: z.string().meta({ description: 'The event id that you sent, or the id that ingress created.' }),
    duplicate: z.boolean().meta({
      description:
        'Whether an event with this id was already accepted in the last 24 hours. Duplicate events are only stored once.',
    }),
    groupKey: z.string().nullable().meta({
      description:
        'The group key of this request. If the value is null, the request does not have a group key and the event is not routed.',
    }),
  })
  .meta({ id: 'AcceptedEvent' });

/** Response of the sandbox route, consisting of the production route's response plus the run. */
export const SandboxAcceptedEvent = AcceptedEvent.extend({
  sandbox: z
    .literal(true)
    .meta({ description: 'This value is always true. No endpoint is called and no tokens are charged.' }),
  runId: z.string().meta({ description: 'The run that the event belongs to.' }),
  run: z.string().meta({ description: 'The path of the report of the run.' }),
}).meta({ id: 'SandboxAcceptedEvent' });

const time = (description: string) => z.iso.datetime().meta({ description });
const ms = (description: string) => z.int().min(0).meta({ description });

const ExpectedAttempt = z
  .object({
    status: z.int().meta({ description: 'The HTTP status of the simulated response.' }),
    delayMs: ms(
      'The delay in the retry schedule before this attempt, in milliseconds. The value is 0 for the first attempt. In production, up to 20 % of jitter is added.',
    ),
    jitteredDelayMs: ms('The value of delayMs including jitter, in milliseconds.'),
    compressedDelayMs: ms('The delay in the run, in milliseconds.'),
  })
  .meta({ id: 'ExpectedAttempt' });

const ActualAttempt = z
  .object({
    at: time('The time of the attempt.'),
    status: z.string().meta({ description: 'The HTTP status of the response.' }),
    waitedMs: ms('The time since the previous attempt, in milliseconds. The value is 0 for the first attempt.'),
  })
  .meta({ id: 'ActualAttempt' });

const Delivery = z
  .object({
    subscriptionPublicId: z.string().meta({ description: 'The subscription whose endpoint is called in production.' }),
    state: z
      .enum(['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'])
      .meta({ description: 'The state of the delivery.' }),
    heldBy: z.enum(['no_endpoint', 'endpoint_held', 'endpoint_disabled']).nullable().meta({
      description:
        'The reason why no attempt is made. The value no_endpoint means that the partner pulls events. The value endpoint_held means that the endpoint is not allowed or waits for a Secret. The value endpoint_disabled means that the endpoint is disabled.',
    }),
    tokens: z.int().meta({ description: "The number of tokens that the producer's account is charged in production." }),
    disablesEndpoint: z.boolean().meta({
      description:
        'Whether an attempt received status 410. In production, the endpoint is then disabled and the event is kept.',
    }),
    expected: z
      .object({
        outcome: z.enum(['delivered', 'dead']).meta({ description: 'The expected final state of the delivery.' }),
        attempts: z.array(ExpectedAttempt).meta({ description: 'All expected attempts.' }),
      })
      .nullable()
      .meta({
        description:
          'The expected result based on the simulation and the retry schedule. The value is null before the first attempt.',
      }),
    attempts: z
      .array(ActualAttempt)
      .meta({ description: 'The attempts that were made, with the oldest attempt first.' }),
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .nullable()
      .meta({
        description:
          'The headers of the last attempt. The value is null before the first attempt. Signatures and the values of the partner\'s headers are replaced by "…".',
      }),
  })
  .meta({ id: 'SandboxDelivery' });

const Verdict = z
  .object({
    integrationPublicId: z.string().meta({ description: 'The integration.' }),
    verdict: z.enum(['routed', 'waiting', 'not_routed']).meta({
      description:
        'The decision of the gate. The value waiting means that there is no decision yet or that the subscription is paused.',
    }),
    reason: z.string().nullable().meta({ description: 'The reason why the event is not routed or is waiting.' }),
    delivery: Delivery.nullable().meta({ description: 'The delivery. This field is set if the event was routed.' }),
  })
  .meta({ id: 'SandboxVerdict' });

const RunEvent = z
  .object({
    id: z.string().meta({ description: 'The event id.' }),
    queue: z.string().meta({ description: 'The name of the stream.' }),
    type: z.string().nullable().meta({ description: 'The event type.' }),
    groupKey: z
      .string()
      .nullable()
      .meta({ description: 'The group key. If the value is null, the event is not routed.' }),
    bytes: z.int().meta({ description: 'The size of the body in bytes.' }),
    acceptedAt: time('The time when ingress accepted the event.'),
    failCode: z.int().nullable().meta({ description: 'sb_fail_code.' }),
    failCount: z.int().nullable().meta({ description: 'sb_fail_count.' }),
    integrations: z.array(Verdict).meta({
      description:
        'The decision of the gate for each integration. Integrations that received the event are listed first.',
    }),
    moreIntegrations: z.int().meta({ description: 'The number of integrations that are not included in the list.' }),
  })
  .meta({ id: 'SandboxEvent' });

/** Report of a run, including one page of its events. */
export const RunReport = z
  .object({
    tenantPublicId: z.string().meta({ description: "The producer's workspace." }),
    runId: z.string().meta({ description: 'The id of the run.' }),
    sandbox: z
      .literal(true)
      .meta({ description: 'This value is always true. No endpoint was called and no tokens were charged.' }),
    begunAt: time('The time when the first event of the run was accepted.'),
    endsAt: time('The time when the run is deleted, which is 24 hours after begunAt.'),
    compression: z.int().meta({
      description:
        'The factor by which retry delays are shorter than in production. With a factor of 36,000, one hour is 100 ms.',
    }),
    totals: z
      .object({
        events: z.int().meta({ description: 'The number of events in the run.' }),
        deliveries: z
          .int()
          .meta({ description: 'The number of routed events. Each integration is counted separately.' }),
        pending: z.int().meta({ description: 'The number of deliveries that have not ended.' }),
        delivered: z.int().meta({ description: 'The number of successful deliveries.' }),
        dead: z.int().meta({ description: 'The number of deliveries that failed after all retries.' }),
        tokens: z
          .int()
          .meta({ description: "The number of tokens that the producer's account is charged in production." }),
      })
      .meta({ description: 'The totals for the whole run.' }),
    data: z.array(RunEvent).meta({ description: 'The events in the order in which they were accepted.' }),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: 'The cursor of the next page. The value is null on the last page.' }),
  })
  .meta({ id: 'RunReport' });

export type RunReport = z.infer<typeof RunReport>;
export type RunEvent = RunReport['data'][number];
export type SandboxVerdict = RunEvent['integrations'][number];
export type SandboxDelivery = NonNullable<SandboxVerdict['delivery']>;
