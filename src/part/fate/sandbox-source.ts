import { parseEndpointHealth } from '../../core/delivery/endpoint-health.ts';
import { parseSlotEndpoint } from '../../core/delivery/slot-endpoint.ts';
import type { RedisClient } from '../../redis/client.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import type { Lookup, QueueRef } from '../../redis/queue-store.ts';
import { type PlacedInbox, readIntegrationState, type SandboxSource } from '../../redis/sandbox-source.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import { readPart } from '../inbox/find-part.ts';
import { type Part, slotOf } from '../keys.ts';
import { msOfRef } from '../lanes/ref.ts';
import { healthText } from '../state/health-text.ts';
import { isTenantReady } from './fate.ts';
import { readOpenIntegrations } from './open-integrations.ts';
import { readSnapshot, type SlotSnapshot } from './snapshot.ts';

type Fields = Readonly<Record<string, string>>;

const CLOSED = { integration: {}, subscription: {}, activations: new Map<string, string>() };

/** Health of an endpoint that is disabled, as `parseEndpointHealth` reads it; undefined of any other. */
function disabledHealth(text: string, { enabledMs = 0 }: SubscriptionRow): string | undefined {
  const health = healthText(text);
  const disabled = parseEndpointHealth(health)?.disabled;
  // `claims/health.lua` forgets it with the next claim.
  return disabled === undefined || enabledMs > disabled.ms ? undefined : health;
}

/** A subscription as the other layout has it. */
function subscriptionFields(
  { tenant, queue, gen }: Part,
  { sub, inc }: PlacedInbox['inbox'],
  { row, endpoint, health }: SlotSnapshot & { readonly row: SubscriptionRow },
): Fields {
  const owner = parseSlotEndpoint(endpoint);
  const sealed = owner?.subscription === sub && owner.inc === inc ? owner.sealed : undefined;
  const disabled = disabledHealth(health, row);
  return {
    inc,
    tenant,
    queue,
    gen,
    route: row.route,
    send: row.send,
    cap: String(row.cap),
    cfgv: row.cfgv,
    ...(row.enabledMs === undefined ? {} : { enabled: String(row.enabledMs) }),
    ...(row.unordered ? { unordered: '1' } : {}),
    ...(sealed === undefined ? {} : { endpoint: sealed }),
    ...(disabled === undefined ? {} : { health: disabled }),
  };
}

/** What no part knows: it is in the controller's record. */
async function readRecord(redis: Pick<RedisClient, 'call'>, { integration, sub }: PlacedInbox['inbox']) {
  const i = integrationKeys(integration);
  const [[state, accepted], [since, skipTo]] = (await Promise.all([
    redis.call('hmget', i.meta, 'state', 'since'),
    redis.call('hmget', i.sub(sub), 'since', 'skipTo'),
  ])) as [(string | null)[], (string | null)[]];
  return {
    integration: { state: state ?? 'active', ...(accepted == null ? {} : { since: accepted }) },
    subscription: { ...(since == null ? {} : { since }), ...(skipTo == null ? {} : { skipTo }) },
  };
}

/**
 * Reads production for sandbox runs where events are in parts. Each call is a snapshot of the part, which is not asked
 * again when an event is routed in a run.
 */
export function createPartSource(redis: RedisClient): SandboxSource {
  /** Of a stream that is gone there is nothing to wait for. */
  async function isGone({ tenant, queue }: QueueRef): Promise<boolean> {
    return (await redis.call('hexists', tenantKeys(tenant).index, `q:${queue}`)) === 0;
  }

  return {
    async lookup(ref, groupKeys): Promise<Lookup | undefined> {
      const [isReady, part] = await Promise.all([
        isTenantReady(redis, ref.tenant),
        readPart(redis, ref.tenant, ref.queue),
      ]);
      if (!isReady) return undefined;
      const found = part && (await readOpenIntegrations(redis, part, groupKeys));
      if (found === undefined) {
        const nobody = { payer: '', metered: true, subscriptions: new Map<string, string>(), gates: new Map() };
        return (await isGone(ref)) ? nobody : undefined;
      }
      const subscribers = await redis.readHash(tenantKeys(ref.tenant).subs(ref.queue));
      const { payer, plan, gates } = found;
      return { payer, metered: plan === 'Metered', subscriptions: new Map(Object.entries(subscribers)), gates };
    },

    async readGate({ tenant, queue, inbox }, groupKeys) {
      const [part, record] = await Promise.all([readPart(redis, tenant, queue), readRecord(redis, inbox)]);
      const slot = slotOf(inbox.sub, inbox.inc);
      const found = part && (await readSnapshot(redis, { part, slot }, groupKeys));
      if (part === undefined || found === undefined) return CLOSED;
      const { row, activeSince } = found;
      const integration = { ready: '1', ...record.integration };
      const activations = new Map([...activeSince].map(([groupKey, ref]) => [groupKey, String(msOfRef(ref))]));
      if (row === undefined || row.integration !== inbox.integration) {
        return { integration, subscription: {}, activations };
      }
      // A row is closed as well where its integration is not active: that is another reason.
      const route = record.integration.state === 'active' ? row.route : 'open';
      const fields = subscriptionFields(part, inbox, { ...found, row });
      return { integration, subscription: { ...fields, route, ...record.subscription }, activations };
    },

    readState: integration => readIntegrationState(redis, integration),
  };
}
