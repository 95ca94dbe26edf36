import type { RedisClient } from '../client.ts';
import { createInbox, type Inbox } from './inbox.ts';
import { type IntegrationShort, START_MS } from './tenant.ts';

/** What ends an event as a dead letter. */
export const DEAD = { outcome: 'dead', record: 'dead 1 1 500 9' } as const;
/** Ranges for replays: everything that the tests publish; of it, what is dead. */
export const DAY = { fromMs: START_MS - 1_000, toMs: START_MS + 86_400_000 };
export const DEAD_ONES = { ...DAY, states: ['dead'] as const };

/** An inbox whose workspace pays by the plan `Metered`. */
export async function createPaidInbox(redis: RedisClient, integration: IntegrationShort = {}): Promise<Inbox> {
  const inbox = await createInbox(redis, integration);
  await inbox.setAccount('Metered', 0);
  return inbox;
}

export const replay = ({ replays, payer, inbox }: Inbox, ref: string, id = 'rpl_1') =>
  replays.start(payer, id, inbox, { ref });
