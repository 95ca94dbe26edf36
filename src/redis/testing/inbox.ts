import { refOfStreamId } from '../../core/ids/refs.ts';
import type { RedisClient } from '../client.ts';
import type { Hint } from '../hints.ts';
import { createInboxOperations } from '../inbox-operations.ts';
import { createInboxReader } from '../inbox-reader.ts';
import { createInboxRecovery } from '../inbox-recovery.ts';
import type { Claim, Completion } from '../inbox-store.ts';
import { accountKeys, inboxKeys, integrationKeys } from '../keys.ts';
import { createReplays } from '../replays.ts';
import { createTenant, type IntegrationShort, items, START_MS } from './tenant.ts';

const LEASE_MS = 25_000;

/** One inbox of a tenant of its own, with everything that its integration does to it; events come by real ingress. */
export async function createInbox(
  redis: RedisClient,
  integration: IntegrationShort = {},
  groupKeys: readonly string[] = ['a', 'b', 'c'],
) {
  const t = createTenant(redis);
  await t.apply(t.routes({ x: integration }));
  for (const groupKey of groupKeys) await t.activate('x', groupKey);
  const inbox = t.inboxOf('x');
  const i = integrationKeys(inbox.integration);
  /** Pays for replays: not the producer. */
  const payer = `${t.account}own`;
  const lowered: Hint[] = [];
  const lowerInboxes = async (hints: readonly Hint[]) => void lowered.push(...hints);
  const sweeps: Hint[] = [];
  const lowerAccounts = async (hints: readonly Hint[]) => void sweeps.push(...hints);
  let turn = 0;

  async function claim(room = 64) {
    const token = `t${turn++}`;
    const answer = await t.inboxes.claim(inbox, t.nowMs(), room, token, LEASE_MS);
    return answer.answer === 'OK' ? answer.claims.map(each => ({ ...each, token })) : [];
  }
  async function end({ lane, ref, token }: Claim & { readonly token: string }, change: Partial<Completion> = {}) {
    const completion = { lane, ref, token, outcome: 'delivered', record: `delivered ${t.nowMs()} 1 204 3`, ...change };
    const { answers } = await t.inboxes.complete(inbox, t.nowMs(), [completion as Completion]);
    return answers[0];
  }
  /** Lets go of what its failures led to: of a hundred in a row the breaker would open. */
  const forgive = () => redis.call('hdel', i.sub(inbox.sub), 'health');

  return {
    t,
    inbox,
    payer,
    forgive,
    x: inboxKeys(inbox.integration, inbox.sub, inbox.inc),
    lowered,
    sweeps,
    claim,
    end,
    reader: createInboxReader(redis),
    operations: createInboxOperations({ redis, nowMs: t.nowMs, lower: lowerInboxes }),
    recovery: createInboxRecovery({ redis, nowMs: t.nowMs, lower: lowerInboxes, pageEvents: 10 }),
    replays: createReplays({ redis, nowMs: t.nowMs, lowerInboxes, lowerAccounts }),
    /** Ingests and routes one event a group key; answers their refs. */
    publish: async (keys: readonly string[], body?: string): Promise<string[]> => {
      const entries = await t.ingest(keys, body);
      const answer = await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', t.account, items(entries));
      if (answer.answer !== 'OK') throw new Error(`route answered ${answer.answer}`);
      return entries.map(({ id }) => refOfStreamId(id));
    },
    /** Ends everything that is due, attempt by attempt, as `change` says; answers (lane, ref)* in order. */
    drain: async (change: Partial<Completion> = {}): Promise<[lane: string, ref: string][]> => {
      const ended: [string, string][] = [];
      for (let claims = await claim(); claims.length > 0; claims = await claim()) {
        for (const each of claims) {
          await end(each, change);
          if (change.outcome !== undefined) await forgive();
          ended.push([each.lane, each.ref]);
        }
      }
      return ended;
    },
    /** Brings another state of the integration into force. */
    say: (next: IntegrationShort) => t.apply(t.routes({ x: next })),
    setAccount: (plan: 'Free' | 'Metered', included: number) => t.control.setAccount(1, payer, plan, included),
    usedTokens: async () => Number((await redis.readHash(accountKeys(payer).meta)).used ?? 0),
    /** Counters of the subscription, which have to add up (invariant 13). */
    count: async (): Promise<Readonly<Record<string, number>>> => {
      const fields = await redis.readHash(i.sub(inbox.sub));
      const counters = Object.entries(fields).filter(([name]) => name.startsWith('n:'));
      const counts = Object.fromEntries(counters.map(([name, n]) => [name.slice(2), Number(n)]));
      const { routed = 0, replayed = 0, tested = 0, delivered = 0, dead = 0, skipped = 0, expired = 0 } = counts;
      const open = Number(await redis.call('zcard', inboxKeys(inbox.integration, inbox.sub, inbox.inc).pending));
      if (routed + replayed + tested !== open + delivered + dead + skipped + expired) {
        throw new Error(`not conserved: ${JSON.stringify(counts)}, ${open} open`);
      }
      return { ...counts, open };
    },
  };
}

export type Inbox = Awaited<ReturnType<typeof createInbox>>;
