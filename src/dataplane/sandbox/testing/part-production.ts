import type { DispositionFacts } from '../../../core/routing/event-disposition.ts';
import { type Completion, createExchange } from '../../../part/claims/exchange.ts';
import type { ClaimedEvent } from '../../../part/claims/message.ts';
import { createPartRoutingReader } from '../../../part/fate/routing-reader.ts';
import type { PartClient } from '../../../part/inbox/find-part.ts';
import { inboxRefOf } from '../../../part/inbox/ref-names.ts';
import { type Part, partKeys } from '../../../part/keys.ts';
import { streamIdOf } from '../../../part/lanes/ref.ts';
import { createIngest } from '../../../part/log/ingest.ts';
import { QUEUE, START_MS } from '../../../record/testing/tenant.ts';
import type { RedisClient } from '../../../redis/client.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createAttempt } from '../../parts/claims/attempt.ts';
import { createOpenSlots } from '../../parts/claims/opened-slots.ts';
import type { PartTenant } from './part-tenant.ts';
import { testKeys } from './sandbox.ts';
import { answering, EVENTS, endOf, groupKeyOf, NAMES, orderOf } from './twin.ts';

/** Claims are only returned in replies. */
const HOLDING = {
  dispatcher: 'd',
  readyMs: 3_000,
  limit: 1_000,
  holdsAlone: false,
  pushed: 0,
  bytes: 0,
  roomBytes: 0,
};

/** Publishes the events in production. The events are routed and delivered until nothing is due any more. */
export async function runPartProduction(redis: RedisClient, t: PartTenant) {
  const ids = await publishAll(redis, t);
  await deliverAll(t);
  return readOutcome(t.client, t.part, t, ids);
}

async function publishAll(redis: RedisClient, t: PartTenant): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  const { cfgv = '', source = '' } = await redis.readHash(t.keys.meta);
  const ingest = createIngest(t.client, t.nowMs);
  for (const [i, [groupKey = '']] of EVENTS.entries()) {
    const senderId = `e${i}`;
    const meta = JSON.stringify({ i: senderId, s: source });
    const answer = await ingest(t.part, cfgv, [{ senderId, groupKey, meta, body: Buffer.from('body') }]);
    const [first] = answer.answer === 'OK' ? answer.events : [];
    if (first?.answer === 'OK') ids.set(first.ref, senderId);
  }
  return ids;
}

/** Claims and sends events until there is nothing due any more. The clock is always moved to the next due time. */
async function deliverAll(t: PartTenant): Promise<void> {
  const exchange = createExchange(t.client);
  const log = createLogger({ level: 'silent' });
  const open = createOpenSlots({ redis: t.client, keys: testKeys, version: '0', wallMs: t.nowMs, log }, t.part);
  const made = new Map<string, number>();
  const nameOfSlot = new Map(NAMES.map(name => [t.slot(name), name]));

  async function attempt(event: ClaimedEvent): Promise<Completion[]> {
    const opened = await open(event.claims.map(({ slot }) => slot));
    return Promise.all(
      event.claims.map((claim, i) => {
        const slot = opened[i];
        if (slot === undefined) throw new Error(`claimed without an endpoint: ${claim.slot}`);
        const deps = {
          attempt: answering(nameOfSlot.get(claim.slot) as string, made),
          nowMs: t.nowMs,
          wallMs: t.nowMs,
          monotonicMs: () => 0,
          random: () => 0.5,
          onAttempt: () => {},
        };
        const held = { claim, event, atMs: 0, behind: claim.behind, next: undefined };
        return createAttempt(deps, t.part)(slot, held, event.body);
      }),
    );
  }

  let ended: Completion[] = [];
  let calls = 0;
  for (;;) {
    const answer = await exchange(t.part, { ...HOLDING, number: ++calls, held: ended.length }, ended, 64);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    ended = (await Promise.all(answer.events.map(attempt))).flat();
    if (ended.length > 0) continue;
    if (answer.dueMs === undefined) return;
    t.clock.ms = Math.max(t.clock.ms, answer.dueMs);
  }
}

/**
 * The result. Includes what happened to each event for each integration, the order of the deliveries, and the counts.
 */
export async function readOutcome(redis: PartClient, part: Part, t: PartTenant, ids: ReadonlyMap<string, string>) {
  const keys = partKeys(part);
  const stateOf = (integration: string) => (integration === t.nameOf('pending') ? 'pending' : 'active');
  const reader = createPartRoutingReader(redis, t.nowMs, stateOf);
  const { cursor } = await reader.readQueue(t.tenant, QUEUE);
  const pending = (await redis.call('zrange', keys.pending, 0, -1)) as string[];
  const outcome: Record<string, unknown> = {};
  for (const name of NAMES) {
    const ended: [string, number][] = [];
    const integration = t.nameOf(name);
    for (const [ref, id] of ids) {
      const groupKey = groupKeyOf(id);
      const reading = await reader.readDisposition(t.tenant, QUEUE, integration, { ref: inboxRefOf(ref), groupKey });
      const event = { id: streamIdOf(ref), groupKey, cursor, integration: stateOf(integration), nowMs: START_MS };
      outcome[`${name} ${id}`] = endOf({ ...event, ...reading } as DispositionFacts);
      const { progress } = reading;
      if (progress?.endedMs !== undefined) ended.push([id, progress.endedMs]);
    }
    for (const groupKey of ['a', 'b', 'c']) outcome[`${name} order of ${groupKey}`] = orderOf(ended, groupKey);
    outcome[`${name} behind`] = (await redis.call('hexists', keys.positions, t.slot(name))) === 1;
    outcome[`${name} open`] = pending.filter(member => member.startsWith(t.slot(name))).length;
  }
  const [, routed, , delivered, dead] = `${await redis.call('hget', keys.counts, t.slot('x'))}`.split(' ');
  return {
    outcome,
    counters: { routed, delivered, dead },
    tokens: Number(await redis.call('hget', keys.meta, 'used')),
  };
}
