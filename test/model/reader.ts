import { createPartRoutingReader } from '../../src/part/fate/routing-reader.ts';
import { createFindSlot, type FindStream } from '../../src/part/inbox/find-part.ts';
import { createPartInboxReader } from '../../src/part/inbox/inbox-reader.ts';
import { inboxRefOf, partRefOf } from '../../src/part/inbox/ref-names.ts';
import { msOfRef } from '../../src/part/lanes/ref.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { integrationId } from './state/definition.ts';
import { deliveryName, RETENTION_MS, type Receiver } from './state/expectation.ts';
import type { ModelTenant } from './state/tenant.ts';
import { hold } from './state/violation.ts';

export interface ReaderDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly findStream: FindStream;
  readonly tenants: readonly ModelTenant[];
}

/** States that readers see for open deliveries. */
const OPEN = ['pending', 'inflight', 'retrying'];
const PAGE = 7;

/** Reads events as the API does: inbox and explanation must match the known state. */
export function createReader({ redis, nowMs, findStream, tenants }: ReaderDeps) {
  const inboxes = createPartInboxReader(redis, createFindSlot(redis, findStream));
  const routing = createPartRoutingReader(redis, nowMs, () => 'active');
  const isKnown = (tenant: ModelTenant, { uid, ended, leaving }: Receiver) => {
    const subscription = tenant.defined().subscriptions.get(uid);
    return tenant.isCertain() && !ended && !leaving && subscription !== undefined && subscription.route !== 'closed';
  };

  async function askInbox(tenant: ModelTenant, receiver: Receiver): Promise<void> {
    const reported: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await inboxes.list(tenant.inboxOf(receiver), { limit: PAGE, cursor });
      hold(17, page.answer === 'OK', () => `${tenant.name}'s ${receiver.name} answers ${page.answer}`);
      for (const { ref, replayId, progress } of page.events) {
        const state = OPEN.includes(progress.state) ? 'open' : progress.state;
        reported.push(`${deliveryName(partRefOf(ref) ?? ref, replayId)} ${state}`);
      }
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    const known = [...receiver.final, ...Array.from(receiver.open.keys(), name => [name, 'open'] as const)];
    // Expired events are no longer listed, and for replays, only the event is listed.
    const mayGo = (name: string) => nowMs() - msOfRef(name.slice(0, 15)) > RETENTION_MS;
    const listed = known.filter(
      ([name, state]) => !name.includes(':') && (!mayGo(name) || reported.includes(`${name} ${state}`)),
    );
    const should = listed.map(each => each.join(' ')).toSorted();
    const is = reported.toSorted();
    hold(17, is.join() === should.join(), () => `${receiver.name} lists ${is.join()}; it is ${should.join()}`);
  }

  async function askFate(tenant: ModelTenant, receiver: Receiver, ref: string): Promise<void> {
    const event = tenant.events.find(each => each.ref === ref && each.stream === receiver.stream);
    if (event === undefined) return;
    const integration = integrationId(tenant.name, receiver.integration);
    const asked = { ref: inboxRefOf(ref), groupKey: event.groupKey };
    const { progress, noted } = await routing.readDisposition(
      tenant.id,
      receiver.stream,
      integration,
      asked,
      undefined,
    );
    const title = `${event.name} for ${tenant.name}'s ${receiver.name}`;
    const undecided = receiver.undecided.get(ref);
    if (undecided !== undefined) {
      hold(17, progress === undefined, () => `${title} is ${progress?.state}, and is not routed yet`);
      // A group key that was not active at that time will not become active later.
      const right = noted === undefined || (noted === 'not_activated' && undecided.may.has('refuse'));
      return hold(17, right, () => `${title} is explained by ${noted}, and is not decided yet`);
    }
    const final = receiver.final.get(ref);
    if (!receiver.routed.has(ref)) return hold(17, progress === undefined, () => `${title} is ${progress?.state}`);
    const state = progress?.state ?? 'nothing';
    const right = final === undefined ? OPEN.includes(state) : state === final || state === 'nothing';
    hold(17, right, () => `${title} is shown as ${state}; it is ${final ?? 'open'}`);
  }

  const known = () =>
    tenants.flatMap(tenant =>
      [...tenant.receivers.values()].filter(each => isKnown(tenant, each)).map(receiver => ({ tenant, receiver })),
    );

  return {
    /** Checks a single inbox and one of its events. */
    async ask(which: number): Promise<string> {
      const all = known();
      const chosen = all[which % all.length];
      if (chosen === undefined) return ': nobody is there';
      const { tenant, receiver } = chosen;
      await askInbox(tenant, receiver);
      const uid = tenant.defined().streams.get(receiver.stream)?.uid;
      const refs = tenant.events.filter(each => each.streamUid === uid && !each.lost).map(({ ref }) => ref);
      const ref = refs[which % refs.length];
      if (ref !== undefined) await askFate(tenant, receiver, ref);
      return `${tenant.name}'s ${receiver.name}`;
    },
    async askAll(): Promise<void> {
      for (const { tenant, receiver } of known()) await askInbox(tenant, receiver);
    },
  };
}
