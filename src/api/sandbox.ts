import { z } from 'zod';
import { queryInteger } from './query-integer.ts';

/** A run's id, as its caller may choose it. */
export const RunId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'has to be 1 to 64 letters, digits, ".", "_" and "-"');

/** Query parameters of the sandbox route; it refuses all others. */
export const SandboxQuery = z.object({
  sb_fail_code: queryInteger(/^[345]\d\d$/, 'has to be a number from 300 to 599', {
    minimum: 300,
    maximum: 599,
    description: 'Every attempt fails with this status, 300 to 599; with sb_fail_count those of them.',
  }),
  sb_fail_count: queryInteger(/^(\d|1\d|20)$/, 'has to be a number from 0 to 20', {
    minimum: 0,
    maximum: 20,
    description: 'The first N attempts fail, 0 to 20 (500 unless sb_fail_code says otherwise), then one succeeds.',
  }),
  runId: RunId.optional().meta({
    description:
      'The run that the event belongs to, made with its first event. Absent: a run of its own, named in the answer.',
  }),
});

/** Query parameters of a run's report. */
export const RunReportQuery = z.object({
  limit: queryInteger(/^([1-9]\d?|1\d\d|2[0-4]\d|250)$/, 'has to be a number from 1 to 250', {
    minimum: 1,
    maximum: 250,
    description: 'Most events of the answer, 1 to 250. Default 50.',
  }),
  cursor: z
    .string()
    .regex(/^[0-9a-z]{15}\.[a-z0-9-]{1,63}$/, 'has to be the nextCursor of the page before')
    .optional()
    .meta({ description: 'The nextCursor of the page before. Absent: from the beginning.' }),
});

/** Answer of the production route. */
export const AcceptedEvent = z
  .object({
    id: z.string().meta({ description: 'The event id: as it was sent, or made here.' }),
    duplicate: z.boolean().meta({ description: 'The id was known within 24 h; the event is stored once.' }),
    groupKey: z.string().nullable().meta({
      description: 'The group key that was read from this request; null: it has none, and the event goes to nobody.',
    }),
  })
  .meta({ id: 'AcceptedEvent' });

/** Answer of the sandbox route: that of production, and the marks. */
export const SandboxAcceptedEvent = AcceptedEvent.extend({
  sandbox: z.literal(true).meta({ description: 'Nobody is called, and nothing is charged.' }),
  runId: z.string().meta({ description: 'The run that the event belongs to.' }),
  run: z.string().meta({ description: 'Path of the report of the run.' }),
}).meta({ id: 'SandboxAcceptedEvent' });

const time = (description: string) => z.iso.datetime().meta({ description });
const ms = (description: string) => z.int().min(0).meta({ description });

const ExpectedAttempt = z
  .object({
    status: z.int().meta({ description: 'HTTP status that the simulation answers with.' }),
    delayMs: ms('What the retry schedule waits before it, ms; 0 for the first. Production adds up to 20 % of jitter.'),
    jitteredDelayMs: ms('The same with the jitter of this very retry, ms.'),
    compressedDelayMs: ms('What the run waits instead, ms.'),
  })
  .meta({ id: 'ExpectedAttempt' });

const MadeAttempt = z
  .object({
    at: time('When it was made.'),
    status: z.string().meta({ description: 'HTTP status that it was answered with.' }),
    waitedMs: ms('Time since the attempt before, ms; 0 for the first.'),
  })
  .meta({ id: 'MadeAttempt' });

const Delivery = z
  .object({
    subscriptionPublicId: z.string().meta({ description: 'The subscription whose endpoint would be called.' }),
    state: z
      .enum(['pending', 'inflight', 'retrying', 'delivered', 'dead', 'skipped', 'expired'])
      .meta({ description: 'Where the delivery is.' }),
    heldBy: z.enum(['no_endpoint', 'endpoint_held', 'endpoint_disabled']).nullable().meta({
      description: 'Why no attempt is made: the partner pulls; its endpoint is refused or held; is disabled.',
    }),
    tokens: z.int().meta({ description: "What production would charge the producer's account, once." }),
    disablesEndpoint: z.boolean().meta({
      description: 'An attempt was answered with 410: production would disable the endpoint then, and hold the event.',
    }),
    expected: z
      .object({
        outcome: z.enum(['delivered', 'dead']).meta({ description: 'How it ends.' }),
        attempts: z.array(ExpectedAttempt).meta({ description: 'Every attempt until then.' }),
      })
      .nullable()
      .meta({ description: 'What simulation and retry schedule lead to; null before the first attempt.' }),
    attempts: z.array(MadeAttempt).meta({ description: 'The attempts that were made, oldest first.' }),
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .nullable()
      .meta({
        description:
          'Headers of the last attempt; null before the first. Signatures, and the values of headers that the partner has set, are replaced by "…".',
      }),
  })
  .meta({ id: 'SandboxDelivery' });

const Verdict = z
  .object({
    integrationPublicId: z.string().meta({ description: 'The integration.' }),
    verdict: z
      .enum(['routed', 'waiting', 'not_routed'])
      .meta({ description: 'What the gate said; waiting: nothing is decided yet, or the subscription is paused.' }),
    reason: z.string().nullable().meta({ description: 'Why it is not routed, or what it waits for.' }),
    delivery: Delivery.nullable().meta({ description: 'Of what was routed.' }),
  })
  .meta({ id: 'SandboxVerdict' });

const RunEvent = z
  .object({
    id: z.string().meta({ description: 'The event id.' }),
    queue: z.string().meta({ description: 'Name of the stream that it came to.' }),
    type: z.string().nullable().meta({ description: 'Event type.' }),
    groupKey: z.string().nullable().meta({ description: 'Group key; without one it goes to nobody.' }),
    bytes: z.int().meta({ description: 'Bytes of the body.' }),
    acceptedAt: time('When it was accepted.'),
    failCode: z.int().nullable().meta({ description: 'sb_fail_code.' }),
    failCount: z.int().nullable().meta({ description: 'sb_fail_count.' }),
    integrations: z
      .array(Verdict)
      .meta({ description: 'What the gate said for each integration: those that got it first.' }),
    moreIntegrations: z.int().meta({ description: 'How many integrations are left out of the list.' }),
  })
  .meta({ id: 'SandboxEvent' });

/** Report of a run, a page of its events. */
export const RunReport = z
  .object({
    tenantPublicId: z.string().meta({ description: 'The producer workspace.' }),
    runId: z.string().meta({ description: 'The run.' }),
    sandbox: z.literal(true).meta({ description: 'Nobody was called, and nothing was charged.' }),
    begunAt: time('When its first event came.'),
    endsAt: time('When it is forgotten: 24 h later.'),
    compression: z
      .int()
      .meta({ description: 'How much faster than production its retries wait: 36,000 makes 100 ms of an hour.' }),
    totals: z
      .object({
        events: z.int().meta({ description: 'Events of the run.' }),
        deliveries: z.int().meta({ description: 'Events times the integrations that got them.' }),
        pending: z.int().meta({ description: 'Deliveries that have not ended.' }),
        delivered: z.int().meta({ description: 'Deliveries that succeeded.' }),
        dead: z.int().meta({ description: 'Deliveries that failed until the retry schedule was used up.' }),
        tokens: z.int().meta({ description: "What production would have charged the producer's account." }),
      })
      .meta({ description: 'Of the whole run.' }),
    data: z.array(RunEvent).meta({ description: 'Events in the order in which they were accepted.' }),
    nextCursor: z.string().nullable().meta({ description: 'For the next page; null on the last one.' }),
  })
  .meta({ id: 'RunReport' });

export type RunReport = z.infer<typeof RunReport>;
export type RunEvent = RunReport['data'][number];
export type SandboxVerdict = RunEvent['integrations'][number];
export type SandboxDelivery = NonNullable<SandboxVerdict['delivery']>;
