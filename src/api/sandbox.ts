import { z } from 'zod';
import { queryInteger } from './query-integer.ts';

/** Id of a run, chosen by the caller. */
export const RunId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, ".", "_" and "-"');

/** Query parameters of the sandbox route; it refuses all others. */
export const SandboxQuery = z.object({
  sb_fail_code: queryInteger(/^[345]\d\d$/, 'must be a number from 300 to 599', {
    minimum: 300,
    maximum: 599,
    description: 'Attempts fail with this status, 300 to 599: the first sb_fail_count of them, or all without it.',
  }),
  sb_fail_count: queryInteger(/^(\d|1\d|20)$/, 'must be a number from 0 to 20', {
    minimum: 0,
    maximum: 20,
    description: 'Number of attempts that fail before one succeeds, 0 to 20. They fail with sb_fail_code, default 500.',
  }),
  runId: RunId.optional().meta({
    description: 'Run to add the event to. The first event creates the run. Absent: a new run; the answer has its id.',
  }),
});

/** Query parameters of a run's report. */
export const RunReportQuery = z.object({
  limit: queryInteger(/^([1-9]\d?|1\d\d|2[0-4]\d|250)$/, 'must be a number from 1 to 250', {
    minimum: 1,
    maximum: 250,
    description: 'Maximum number of events in the answer, 1 to 250. Default 50.',
  }),
  cursor: z
    .string()
    .regex(/^[0-9a-z]{15}\.[a-z0-9-]{1,63}$/, 'must be the nextCursor of the page before')
    .optional()
    .meta({ description: 'The nextCursor of the previous page. Absent: the first page.' }),
});

/** Answer of the production route. */
export const AcceptedEvent = z
  .object({
    id: z.string().meta({ description: 'The event id: as sent, or created by ingress.' }),
    duplicate: z
      .boolean()
      .meta({ description: 'True: an event with this id was accepted in the last 24 h. The event is stored once.' }),
    groupKey: z.string().nullable().meta({
      description: 'Group key of this request. Null: it has none, and the event is not routed.',
    }),
  })
  .meta({ id: 'AcceptedEvent' });

/** Answer of the sandbox route: the answer of production, and the run. */
export const SandboxAcceptedEvent = AcceptedEvent.extend({
  sandbox: z.literal(true).meta({ description: 'Always true: no endpoint is called, and nothing is charged.' }),
  runId: z.string().meta({ description: 'The run that the event belongs to.' }),
  run: z.string().meta({ description: "Path of the run's report." }),
}).meta({ id: 'SandboxAcceptedEvent' });

const time = (description: string) => z.iso.datetime().meta({ description });
const ms = (description: string) => z.int().min(0).meta({ description });

const ExpectedAttempt = z
  .object({
    status: z.int().meta({ description: 'HTTP status of the simulated answer.' }),
    delayMs: ms('Delay of the retry schedule before it, ms; 0 for the first. Production adds up to 20 % of jitter.'),
    jitteredDelayMs: ms('delayMs with the jitter of this retry, ms.'),
    compressedDelayMs: ms('Delay in the run, ms.'),
  })
  .meta({ id: 'ExpectedAttempt' });

const ActualAttempt = z
  .object({
    at: time('Time of the attempt.'),
    status: z.string().meta({ description: 'HTTP status of the answer.' }),
    waitedMs: ms('Time since the previous attempt, ms; 0 for the first.'),
  })
  .meta({ id: 'ActualAttempt' });

const Delivery = z
  .object({
    subscriptionPublicId: z.string().meta({ description: 'Subscription whose endpoint production would call.' }),
    state: z
      .enum(['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'])
      .meta({ description: 'State of the delivery.' }),
    heldBy: z.enum(['no_endpoint', 'endpoint_held', 'endpoint_disabled']).nullable().meta({
      description:
        'Why no attempt is made. no_endpoint: the partner pulls. endpoint_held: the endpoint is refused, or waits for a Secret. endpoint_disabled: it is disabled.',
    }),
    tokens: z.int().meta({ description: "Tokens that production would charge the producer's account, once." }),
    disablesEndpoint: z.boolean().meta({
      description: 'True: an attempt got 410. Production would disable the endpoint and keep the event.',
    }),
    expected: z
      .object({
        outcome: z.enum(['delivered', 'dead']).meta({ description: 'How the delivery ends.' }),
        attempts: z.array(ExpectedAttempt).meta({ description: 'All attempts until then.' }),
      })
      .nullable()
      .meta({ description: 'Expected result of simulation and retry schedule; null before the first attempt.' }),
    attempts: z.array(ActualAttempt).meta({ description: 'Attempts so far, oldest first.' }),
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .nullable()
      .meta({
        description:
          'Headers of the last attempt; null before the first. Signatures and the values of the partner\'s own headers are replaced by "…".',
      }),
  })
  .meta({ id: 'SandboxDelivery' });

const Verdict = z
  .object({
    integrationPublicId: z.string().meta({ description: 'The integration.' }),
    verdict: z
      .enum(['routed', 'waiting', 'not_routed'])
      .meta({ description: 'Decision of the gate. waiting: not decided yet, or the subscription is paused.' }),
    reason: z.string().nullable().meta({ description: 'Why the event is not routed, or what it waits for.' }),
    delivery: Delivery.nullable().meta({ description: 'The delivery, if the event was routed.' }),
  })
  .meta({ id: 'SandboxVerdict' });

const RunEvent = z
  .object({
    id: z.string().meta({ description: 'The event id.' }),
    queue: z.string().meta({ description: 'Name of the stream.' }),
    type: z.string().nullable().meta({ description: 'Event type.' }),
    groupKey: z.string().nullable().meta({ description: 'Group key. Null: the event is not routed.' }),
    bytes: z.int().meta({ description: 'Size of the body in bytes.' }),
    acceptedAt: time('When ingress accepted the event.'),
    failCode: z.int().nullable().meta({ description: 'sb_fail_code.' }),
    failCount: z.int().nullable().meta({ description: 'sb_fail_count.' }),
    integrations: z
      .array(Verdict)
      .meta({ description: 'Decision of the gate for each integration, those that got the event first.' }),
    moreIntegrations: z.int().meta({ description: 'Number of integrations that the list omits.' }),
  })
  .meta({ id: 'SandboxEvent' });

/** Report of a run, a page of its events. */
export const RunReport = z
  .object({
    tenantPublicId: z.string().meta({ description: 'The producer workspace.' }),
    runId: z.string().meta({ description: 'The run.' }),
    sandbox: z.literal(true).meta({ description: 'Always true: no endpoint was called, and nothing was charged.' }),
    begunAt: time('When the first event of the run was accepted.'),
    endsAt: time('When the run is deleted: 24 h after begunAt.'),
    compression: z.int().meta({
      description: 'Factor by which retry delays are shorter than in production. With 36,000 an hour is 100 ms.',
    }),
    totals: z
      .object({
        events: z.int().meta({ description: 'Events of the run.' }),
        deliveries: z.int().meta({ description: 'Number of routed events, counted for each integration.' }),
        pending: z.int().meta({ description: 'Deliveries that have not ended.' }),
        delivered: z.int().meta({ description: 'Deliveries that succeeded.' }),
        dead: z.int().meta({ description: 'Deliveries that used up the retry schedule.' }),
        tokens: z.int().meta({ description: "Tokens that production would have charged the producer's account." }),
      })
      .meta({ description: 'Totals of the whole run.' }),
    data: z.array(RunEvent).meta({ description: 'Events in the order of acceptance.' }),
    nextCursor: z.string().nullable().meta({ description: 'Cursor of the next page; null on the last one.' }),
  })
  .meta({ id: 'RunReport' });

export type RunReport = z.infer<typeof RunReport>;
export type RunEvent = RunReport['data'][number];
export type SandboxVerdict = RunEvent['integrations'][number];
export type SandboxDelivery = NonNullable<SandboxVerdict['delivery']>;
