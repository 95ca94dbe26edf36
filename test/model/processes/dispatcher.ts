import { streamIdOfRef } from '../../../src/core/ids/refs.ts';
import { openSubscription } from '../../../src/dataplane/dispatcher/subscription.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { createHintIndex } from '../../../src/redis/hints.ts';
import { type Claim, type Completion, createInboxStore, parseInboxMember } from '../../../src/redis/inbox-store.ts';
import { hintPartition } from '../../../src/redis/keys.ts';
import { ROOT_KEY, SEAL_KEYS } from './controller.ts';

export const CLAIM_LEASE_MS = 25_000;
const HINT_LEASE_MS = 30_000;

/** A claimed event on its way to the partner. */
export interface Flight {
  readonly member: string;
  readonly claim: Claim;
  readonly token: string;
  readonly untilMs: number;
  /** Event id, group key and body as the partner gets them; undefined when retention, or a flush, took it. */
  readonly event: { readonly eventId: string; readonly groupKey: string; readonly body: string } | undefined;
}

/** A dispatcher process, its attempts drawn out: claimed in one step, ended in another. */
export type Dispatcher = ReturnType<typeof createDispatcher>;

export function createDispatcher(redis: RedisClient, name: string, nowMs: () => number) {
  const inboxes = createInboxStore(redis);
  const hints = createHintIndex(redis, 'd');
  const keys = { rootKey: ROOT_KEY, sealKeys: SEAL_KEYS };
  const flights: Flight[] = [];
  /** Leases of hints: member → partition and token. */
  const leases = new Map<string, { readonly partition: number; readonly token: string }>();
  let turns = 0;

  async function settle(member: string, nextMs: number | null): Promise<void> {
    const lease = leases.get(member);
    if (lease === undefined || flights.some(each => each.member === member)) return;
    leases.delete(member);
    await hints.settle(lease.partition, member, lease.token, nextMs);
  }

  async function read(member: string, claims: readonly Claim[]): Promise<(Flight['event'] | undefined)[]> {
    const inbox = parseInboxMember(member);
    const subscription = await openSubscription(inboxes, keys, 'model', inbox, nowMs());
    if (subscription === undefined) throw new Error(`claimed for ${member}, which is gone`);
    const { tenant, queue, gen } = subscription.source;
    const stored = await inboxes.readEvents(
      tenant,
      queue,
      gen,
      claims.map(({ ref }) => streamIdOfRef(ref)),
    );
    return stored.map(each =>
      each === undefined
        ? undefined
        : {
            eventId: (JSON.parse(each.meta) as { i: string }).i,
            groupKey: each.groupKey,
            body: each.body.toString(),
          },
    );
  }

  return {
    flights,
    /** Claims what is due in inboxes of the given queues; each claim is reported before anything else happens. */
    async claim(
      homes: readonly string[],
      room: number,
      onClaim: (member: string, claim: Claim) => void,
    ): Promise<void> {
      for (const partition of new Set(homes.map(hintPartition))) {
        const hintToken = `${name}.h${turns++}`;
        const picked = await hints.pick(partition, nowMs(), 100, HINT_LEASE_MS, hintToken);
        for (const member of picked.members) {
          leases.set(member, { partition, token: hintToken });
          const token = `${name}.c${turns++}`;
          const answer = await inboxes.claim(parseInboxMember(member), nowMs(), room, token, CLAIM_LEASE_MS);
          if (answer.answer !== 'OK') {
            await settle(member, answer.answer === 'CLOSED' ? nowMs() + 1_000 : null);
            continue;
          }
          for (const claim of answer.claims) onClaim(member, claim);
          const untilMs = nowMs() + CLAIM_LEASE_MS;
          const events = answer.claims.length === 0 ? [] : await read(member, answer.claims);
          for (const [i, claim] of answer.claims.entries()) {
            flights.push({ member, claim, token, untilMs, event: events[i] });
          }
          const full = answer.more || answer.claims.length === room;
          await settle(member, full ? nowMs() : (answer.nextMs ?? null));
        }
      }
    },
    /** Ends an attempt; answers what was written of it. */
    async end(flight: Flight, outcome: Completion['outcome'], dueMs: number): Promise<'OK' | 'GONE' | 'STALE'> {
      flights.splice(flights.indexOf(flight), 1);
      const { member, claim, token } = flight;
      const record = `${outcome} ${nowMs()} ${claim.attempts} model`;
      const completion = { lane: claim.lane, ref: claim.ref, token, outcome, dueMs, record };
      const { answers, nextMs } = await inboxes.complete(parseInboxMember(member), nowMs(), [completion]);
      await settle(member, nextMs === undefined ? null : Math.max(nextMs, nowMs()));
      return answers[0] as 'OK' | 'GONE' | 'STALE';
    },
  };
}
