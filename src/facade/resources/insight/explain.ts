import { z } from 'zod';
import { groupKey } from '../../../api/group-key.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { type GateFacts, type GateVerdict, judgeGate } from '../../../core/routing/gate-verdict.ts';
import { HELD, type HeldReason, NOT_ROUTED } from '../../../core/routing/reasons.ts';
import { mapSteps } from '../../../core/routing/steps.ts';
import type { GateReading, QueueReading } from '../../../plane/routing-reader.ts';
import { inSlices } from '../../../time/slices.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdOf } from '../../caches/indexes.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { gateOfObjects } from '../../objects/gate-of-objects.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { chooseIntegrations, chooseStream, StreamChoice, StreamName, streamName } from '../streams/stream-choice.ts';

/** The reason code for an event that is not routed or has to wait. */
export const Reason = z.enum([...NOT_ROUTED, ...HELD]);

/** Readable name, shown next to the id. Must not contain the invited e-mail address. */
export const IntegrationName = z.string().meta({
  description: "The name of the Integration within the producer's namespace.",
  example: 'globex',
});

const verdict = {
  wouldRoute: z
    .boolean()
    .meta({ description: 'Indicates whether an event accepted now would be routed to the inbox.' }),
  reason: Reason.nullable().meta({
    description: 'The reason why the event would not be routed, or null if it would be routed.',
  }),
  held: z.boolean().meta({
    description:
      'Indicates whether the event would wait until the cause has been resolved. If false, the event would never be routed.',
  }),
};

const GateEntry = z
  .object({
    integrationPublicId: publicIdField('Integration'),
    integrationName: IntegrationName,
    subscriptionPublicId: publicIdField('Subscription').nullable().meta({
      description: "The integration's subscription to the stream, if it has one.",
    }),
    ...verdict,
    inForce: z.object(verdict).meta({
      description:
        'The current decision of the data plane. It can only differ until a change is in force. The data plane uses the reason paused instead of blocked_stream, blocked_package, and suspended.',
    }),
  })
  .meta({
    id: 'Gate',
    description: 'The decision for an integration, based on its custom resources, and as currently in force.',
  });

const Explanation = pageOf(GateEntry)
  .extend({
    stream: StreamName.extend({
      acceptsEvents: z
        .boolean()
        .meta({ description: 'Indicates whether ingress currently accepts events for the stream.' }),
    }).meta({ description: "The event's stream." }),
    groupKey: z.string().nullable().meta({ description: 'The group key of the event, or null if it has none.' }),
  })
  .meta({ id: 'Explanation' });

const viewVerdict = ({ wouldRoute, reason, held }: GateVerdict) => ({ wouldRoute, reason: reason ?? null, held });

/**
 * Returns the state of a gate in Redis.
 *
 * @param short the reason why there are not enough tokens. Undefined if there are enough tokens
 */
export function factsInForce(
  { integration, activated, subscription }: GateReading,
  queue: Pick<QueueReading, 'state'>,
  groupKey: string | undefined,
  short: HeldReason | undefined,
): GateFacts {
  if (queue.state === 'missing' || subscription === 'missing' || integration === 'missing') {
    return { groupKey, integration: 'active', activated, subscription: 'state_missing' };
  }
  return { groupKey, integration, activated, subscription: subscription === 'open' ? (short ?? 'open') : subscription };
}

/**
 * Returns the reason if the balance is not sufficient for a queue, which is the case if there are no tokens left, or if
 * the next event costs more than the remaining tokens.
 */
export function shortageOf(balance: Awaited<ReturnType<Facade['readBalance']>>, queue: string): HeldReason | undefined {
  if (balance === undefined) return 'state_missing';
  const { remainingTokens, shortages } = balance;
  if (remainingTokens === undefined) return undefined;
  const waits = shortages.some(each => each.queue === queue && each.tokens > remainingTokens);
  return waits || remainingTokens === 0 ? 'insufficient_tokens' : undefined;
}

/**
 * Returns the reason if the producer does not have enough tokens for the events in a stream. Redis also keeps the
 * balance of an account that was deleted, but it can't be used.
 */
export async function shortage(
  facade: Facade,
  { publicId: tenant, workspace }: OwnedTenant,
  stream: string,
): Promise<HeldReason | undefined> {
  const { account: name } = workspace.spec;
  if (facade.caches.get('Account', { name }) === undefined) return 'insufficient_tokens';
  const reading = facade.readBalance(publicId('Account', '', name));
  return shortageOf(await fromRedis(reading), `${tenant}:${stream}`);
}

/**
 * Returns the facts derived from the objects, including the balance. Required because the objects don't contain the
 * remaining tokens.
 */
export function factsWanted(wanted: GateFacts, short: HeldReason | undefined): GateFacts {
  const unpaid = short === 'insufficient_tokens' && wanted.subscription === 'open';
  return unpaid ? { ...wanted, subscription: short } : wanted;
}

const explainRouting = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/explain',
  access: 'producer',
  scope: 'waas:read',
  operation: 'explainRouting',
  tag: 'Events',
  summary: 'Explain where an event would go',
  description:
    'Predicts for each integration whether an event with this stream and group key would be routed, and returns the reason if it would not. No event is sent.',
  query: PageQuery.extend({
    stream: StreamChoice,
    groupKey: groupKey().optional().meta({
      description:
        "The event's group key. If you omit it, the decision is for an event without a group key. Such an event is never routed.",
      example: 'store-17',
    }),
    integration: publicIdField('Integration')
      .optional()
      .meta({ description: 'Only return this integration. Defaults to all integrations.' }),
  }),
  cost: 10,
  answers: { 200: { description: 'A list of decisions, sorted by integration.', schema: Explanation } },
  problems: ['unknown_resource', 'malformed_cursor'],
  async handle(facade, { tenant, query }) {
    const { groupKey: key } = query;
    const stream = await chooseStream(facade, tenant.name, query.stream);
    const integrations = await chooseIntegrations(facade, tenant.name, query.integration);
    const page = paginate(
      ['explain', tenant.name, stream.metadata.name, key],
      integrations,
      each => publicIdOf('Integration', each),
      query,
    );
    const name = stream.metadata.name;
    const [queue, short] = await Promise.all([
      fromRedis(facade.routing.readQueue(tenant.publicId, name)),
      shortage(facade, tenant, name),
    ]);
    const nowMs = facade.wallMs();
    const ask = (integration: Cached<'Integration'>) =>
      [integration, gateOfObjects(facade.caches, { tenant, stream, integration, groupKey: key, nowMs })] as const;
    const asked = await inSlices(mapSteps(page.data, ask));
    const data = await Promise.all(
      asked.map(async ([integration, gate]): Promise<z.output<typeof GateEntry>> => {
        const id = publicIdOf('Integration', integration);
        const { subscriptionId = null, ...wanted } = gate;
        const reading = facade.routing.readGate(tenant.publicId, { ...queue, name }, id, key ?? '');
        const inForce = factsInForce(await fromRedis(reading), queue, key, short);
        return {
          integrationPublicId: id,
          integrationName: integration.metadata.name,
          subscriptionPublicId: subscriptionId,
          ...viewVerdict(judgeGate(factsWanted(wanted, short))),
          inForce: viewVerdict(judgeGate(inForce)),
        };
      }),
    );
    const body: z.output<typeof Explanation> = {
      stream: { ...streamName(stream), acceptsEvents: queue.state === 'open' },
      groupKey: key ?? null,
      data,
      nextCursor: page.nextCursor,
    };
    return { status: 200, body };
  },
});

export const EXPLAIN_ROUTES = [explainRouting];
