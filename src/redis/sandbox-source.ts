import type { RedisClient } from './client.ts';
import type { InboxRef } from './inbox-store.ts';
import { integrationKeys } from './keys.ts';
import { createQueueStore, type QueueStore } from './queue-store.ts';

type Fields = Readonly<Record<string, string>>;

/** An inbox, and the queue whose events it takes. */
export interface PlacedInbox {
  readonly tenant: string;
  readonly queue: string;
  readonly inbox: InboxRef;
}

/** What production says of an inbox now. What is missing there is missing here: nothing is routed or attempted then. */
export interface InboxGate {
  /** `ready`, `state` and `since` of its integration. */
  readonly integration: Fields;
  /** Its subscription as `control-plan.ts` writes it, with `since`, `skipTo` and `health`. Empty: there is none. */
  readonly subscription: Fields;
  /** Open group keys → since when, ms; of those that were asked for. */
  readonly activations: ReadonlyMap<string, string>;
}

/** What sandbox runs read of production, whatever its layout. Writes nothing. */
export interface SandboxSource {
  /** As `QueueStore` says; the gates may be a superset. */
  readonly lookup: QueueStore['lookup'];
  readonly readGate: (inbox: PlacedInbox, groupKeys: readonly string[]) => Promise<InboxGate>;
  /** State of an integration, also of one without a subscription; undefined where nobody knows it. */
  readonly readState: (integration: string) => Promise<string | undefined>;
}

/** Reads what the controller recorded of an integration. */
export async function readIntegrationState(
  redis: Pick<RedisClient, 'call'>,
  integration: string,
): Promise<string | undefined> {
  const state = await redis.call('hget', integrationKeys(integration).meta, 'state');
  return typeof state === 'string' ? state : undefined;
}

/** Where gates lie in the slots of integrations, and subscriptions beside them. */
export function createQueueSource(redis: RedisClient): SandboxSource {
  async function readActivations(key: string, groupKeys: readonly string[]): Promise<Map<string, string>> {
    const open = new Map<string, string>();
    if (groupKeys.length === 0) return open;
    const since = (await redis.call('hmget', key, ...groupKeys)) as (string | null)[];
    for (const [i, groupKey] of groupKeys.entries()) {
      const ms = since[i];
      if (typeof ms === 'string') open.set(groupKey, ms);
    }
    return open;
  }

  return {
    lookup: createQueueStore(redis).lookup,
    async readGate({ inbox }, groupKeys) {
      const i = integrationKeys(inbox.integration);
      const [integration, subscription, activations] = await Promise.all([
        redis.readHash(i.meta),
        redis.readHash(i.sub(inbox.sub)),
        readActivations(i.act, groupKeys),
      ]);
      return { integration, subscription, activations };
    },
    readState: integration => readIntegrationState(redis, integration),
  };
}
