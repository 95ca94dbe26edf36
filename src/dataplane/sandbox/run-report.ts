import type { RunEvent, RunReport, SandboxVerdict } from '../../api/sandbox.ts';
import { COMPRESSION, type Simulation } from '../../core/delivery/simulation.ts';
import { parseEventMeta, parseSimulation } from '../../core/events/event-meta.ts';
import { dispositionOf } from '../../core/routing/event-disposition.ts';
import { createPartRoutingReader } from '../../part/fate/routing-reader.ts';
import { parseRow } from '../../part/gate/subscription-row.ts';
import { readPart } from '../../part/inbox/find-part.ts';
import { createReadOnce } from '../../part/inbox/read-once.ts';
import { inboxRefOf, partRefOf } from '../../part/inbox/ref-names.ts';
import { partKeys, slotOf } from '../../part/keys.ts';
import { msOfRef, refOfId, streamIdOf } from '../../part/lanes/ref.ts';
import { partOfRun } from '../../part/sandbox/run-client.ts';
import { createSandboxStore, type SandboxLimits } from '../../part/sandbox/sandbox-store.ts';
import { NO_VIEW, readView, type SlotView } from '../../part/sandbox/view.ts';
import type { RoutingReader } from '../../plane/routing-reader.ts';
import type { RedisClient } from '../../redis/client.ts';
import { integrationKeys, sandboxKeys, tenantKeys } from '../../redis/keys.ts';
import { reportDelivery } from './delivery-report.ts';
import { type RunDelivery, type SentAttempt, sentField } from './run-deliveries.ts';
import { openRun, type RunView } from './run-view.ts';

/** The maximum number of verdicts on each page, and the maximum number of integrations for each event. */
const VERDICTS = 1_000;
const INTEGRATIONS = 100;
/** If there are more names than this in the workspace, integrations that don't have a subscription are not included. */
const NAMES = 1_000;
const DEFAULT_LIMIT = 50;
/** The number of events whose verdicts are read at the same time. All of a page would block the process, and Redis. */
const AT_ONCE = 4;
/** The first id of a stream. */
const FIRST = '-';

export interface PageAsked {
  readonly limit?: number | undefined;
  /** `<ref>.<queue>` of the last event that was included in the previous page. */
  readonly cursor?: string | undefined;
}

export interface RunReportReader {
  /** Reads the report of a run. If the run does not exist, or has ended, this returns undefined. */
  readonly read: (tenant: string, run: string, page: PageAsked) => Promise<RunReport | undefined>;
}

interface ListedEvent {
  readonly ref: string;
  readonly queue: string;
  readonly groupKey: string;
  readonly meta: string;
  readonly bytes: number;
}

/** Data shared by all events in a queue. */
interface QueueView {
  readonly name: string;
  /** Stream id up to which events were routed. */
  readonly cursor: string;
  readonly integrations: readonly IntegrationView[];
  readonly left: number;
}

interface IntegrationView {
  readonly id: string;
  readonly state: 'pending' | 'active' | 'closed';
  /**
   * The subscription that currently receives the events (or has received them in this run), and its slot. If there is
   * none, this is empty.
   */
  readonly sub: string;
  readonly slot: string;
  readonly subscribed: boolean;
  /** The state of this slot in production. */
  readonly production: SlotView | undefined;
}

/** Creates the reports for the results of a run. Only the subscriptions and their state are read from production. */
export function createRunReports(redis: RedisClient, nowMs: () => number, limits?: SandboxLimits): RunReportReader {
  const store = createSandboxStore(redis, nowMs, limits);

  return {
    async read(tenant, run, { limit = DEFAULT_LIMIT, cursor = '' }) {
      const known = await store.readRun(tenant, run);
      if (known === undefined) return undefined;
      const view = openRun(redis, tenant, run, known);
      // The state of integrations is of production.
      const reader = createPartRoutingReader(createReadOnce(view.ofRun), nowMs, () => 'active');
      const listed = await listEvents(view, cursor, limit);
      const page = await choosePage(view, reader, listed.slice(0, limit));
      const full = (await store.readRoom(tenant, run)) <= 0;
      const reading = { nowMs: nowMs(), view, reader, full };
      const data: RunEvent[] = [];
      for (let at = 0; at < page.length; at += AT_ONCE) {
        const some = page.slice(at, at + AT_ONCE);
        data.push(...(await Promise.all(some.map(({ queue, event }) => describeEvent(reading, queue, event)))));
      }
      const last = page.at(-1)?.event;
      return {
        tenantPublicId: tenant,
        runId: run,
        sandbox: true,
        begunAt: new Date(known.begunMs).toISOString(),
        endsAt: new Date(known.endsMs).toISOString(),
        compression: COMPRESSION,
        totals: await readTotals(view),
        data,
        nextCursor: last !== undefined && listed.length > page.length ? keyOf(last) : null,
      };
    },
  };
}

function keyOf({ ref, queue }: ListedEvent): string {
  return `${inboxRefOf(ref)}.${queue}`;
}

async function readQueueView(
  { redis, ofRun, tenant }: RunView,
  reader: RoutingReader,
  name: string,
): Promise<QueueView> {
  const t = tenantKeys(tenant);
  const [part, { cursor }, subscribers, noted, names] = await Promise.all([
    readPart(redis, tenant, name),
    reader.readQueue(tenant, name),
    redis.readHash(t.subs(name)),
    ofRun.readHash(t.subs(name)),
    redis.call('hlen', t.index),
  ]);
  // If there are subscriptions in the run, they are used instead of the current ones.
  const members = { ...subscribers, ...noted };
  const index = Number(names) <= NAMES ? Object.keys(await redis.readHash(t.index)) : [];
  const others = index.flatMap(each => (each.startsWith('i:') ? [each.slice(2)] : []));
  const ids = [...new Set([...Object.keys(members), ...others.toSorted()])];
  const shown = ids.slice(0, INTEGRATIONS).map(id => {
    const [sub = '', inc] = members[id]?.split('.', 2) ?? [];
    return { id, sub, slot: inc === undefined ? undefined : slotOf(sub, inc), subscribed: id in subscribers };
  });
  const slots = shown.flatMap(({ slot }) => slot ?? []);
  const { slots: seen } = (part && (await readView(redis, part, [], slots))) ?? NO_VIEW;
  const integrations = await Promise.all(
    shown.map(async ({ id, slot = '', ...rest }): Promise<IntegrationView> => {
      return { id, slot, ...rest, state: await readState(redis, id), production: seen.get(slot) };
    }),
  );
  return { name, cursor, integrations, left: ids.length - integrations.length };
}

async function readState(redis: RedisClient, integration: string): Promise<IntegrationView['state']> {
  const state = await redis.call('hget', integrationKeys(integration).meta, 'state');
  return state === 'active' || state === 'pending' ? state : 'closed';
}

/** Returns the events after the cursor, in order. If there are more than `limit`, this returns more than `limit`. */
async function listEvents(view: RunView, cursor: string, limit: number): Promise<ListedEvent[]> {
  const all = await Promise.all(view.queues.map(queue => listEventsOf(view, queue, cursor, limit)));
  return all
    .flat()
    .filter(each => keyOf(each) > cursor)
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** Returns the first events of a queue that are not before the cursor. One of them can be the event of the cursor. */
async function listEventsOf({ ofRun, tenant }: RunView, queue: string, cursor: string, limit: number) {
  const { log } = partKeys(partOfRun(tenant, queue));
  const [shown = ''] = cursor.split('.', 1);
  const ref = partRefOf(shown);
  const from = ref === undefined ? FIRST : streamIdOf(ref);
  const entries = (await ofRun.call('xrange', log, from, '+', 'COUNT', limit + 2)) as [string, string[]][];
  return entries.map(([id, [, groupKey = '', , meta = '{}', , bytes = '0']]): ListedEvent => {
    return { ref: refOfId(id), queue, groupKey, meta, bytes: Number(bytes) };
  });
}

/** Returns the first events, with their queues. There are at most as many as a page can have verdicts for. */
async function choosePage(view: RunView, reader: RoutingReader, listed: readonly ListedEvent[]) {
  const queues = new Map<string, QueueView>();
  const page: { readonly queue: QueueView; readonly event: ListedEvent }[] = [];
  let verdicts = 0;
  for (const event of listed) {
    let queue = queues.get(event.queue);
    if (queue === undefined) queues.set(event.queue, (queue = await readQueueView(view, reader, event.queue)));
    verdicts += queue.integrations.length;
    if (page.length > 0 && verdicts > VERDICTS) break;
    page.push({ queue, event });
  }
  return page;
}

async function readTotals({ ofRun, tenant, queues }: RunView): Promise<RunReport['totals']> {
  const totals = { events: 0, deliveries: 0, pending: 0, delivered: 0, dead: 0, tokens: 0 };
  for (const queue of queues) {
    const { counts, meta, body } = partKeys(partOfRun(tenant, queue));
    const [slots, used, events] = await Promise.all([
      ofRun.call('hvals', counts),
      ofRun.call('hget', meta, 'used'),
      ofRun.call('hlen', body),
    ]);
    totals.events += Number(events);
    totals.tokens += Number(used);
    for (const text of slots as string[]) {
      const [, routed = 0, , delivered = 0, dead = 0, expired = 0] = text.split(' ').map(Number);
      totals.deliveries += routed;
      totals.delivered += delivered;
      totals.dead += dead;
      totals.pending += routed - delivered - dead - expired;
    }
  }
  return totals;
}

interface Reading {
  readonly nowMs: number;
  readonly view: RunView;
  /** Reads the decisions that have been made in this run. */
  readonly reader: RoutingReader;
  /** True if the run has reached its limit for deliveries. */
  readonly full: boolean;
}

async function describeEvent(reading: Reading, queue: QueueView, listed: ListedEvent): Promise<RunEvent> {
  const { ref, groupKey, bytes } = listed;
  const meta = parseEventMeta(listed.meta, groupKey, inboxRefOf(ref));
  const simulation = parseSimulation(listed.meta);
  const verdicts = await Promise.all(
    queue.integrations.map(each => describeVerdict(reading, queue, each, listed, simulation)),
  );
  return {
    id: meta.id,
    queue: queue.name,
    type: meta.type ?? null,
    groupKey: groupKey === '' ? null : groupKey,
    bytes,
    acceptedAt: new Date(msOfRef(ref)).toISOString(),
    failCode: simulation.failCode ?? null,
    failCount: simulation.failCount ?? null,
    integrations: verdicts.toSorted((a, b) => Number(b.delivery !== null) - Number(a.delivery !== null)),
    moreIntegrations: queue.left,
  };
}

async function describeVerdict(
  { nowMs, view, reader, full }: Reading,
  queue: QueueView,
  { id, state, sub, slot, subscribed, production }: IntegrationView,
  { ref, groupKey, bytes }: ListedEvent,
  simulation: Simulation,
): Promise<SandboxVerdict> {
  const event = { ref: inboxRefOf(ref), groupKey };
  const found = await reader.readDisposition(view.tenant, queue.name, id, event);
  const facts = { id: streamIdOf(ref), groupKey, cursor: queue.cursor, integration: state, nowMs, ...found };
  const { disposition, reason, progress } = dispositionOf(facts);
  const waits = disposition === 'waiting' ? waitsFor(production, found.subscription?.behindAt, full) : null;
  // A run only uses subscriptions for which a group key of its events is active.
  const isInactive = reason === 'not_subscribed' && subscribed;
  const why = isInactive ? 'not_activated' : (reason ?? waits);
  const verdict = { integrationPublicId: id, verdict: disposition, reason: why };
  if (progress === undefined) return { ...verdict, delivery: null };
  const delivery: RunDelivery = { integration: id, sub, slot, ref };
  const sent = await readSent(view, delivery);
  const described = { run: view.run, delivery, bytes, simulation, progress, sent, production };
  return { ...verdict, delivery: reportDelivery(described) };
}

function waitsFor(production: SlotView | undefined, behindAt: string | undefined, full: boolean): string | null {
  if (behindAt !== undefined && parseRow(production?.row ?? '')?.route === 'paused') return 'paused';
  return full ? 'run_full' : null;
}

async function readSent({ ofRun, tenant, run }: RunView, delivery: RunDelivery): Promise<SentAttempt | undefined> {
  const text = await ofRun.call('hget', sandboxKeys(tenant, run).sent, sentField(delivery));
  return typeof text === 'string' ? (JSON.parse(text) as SentAttempt) : undefined;
}
