import type { RunEvent, RunReport, SandboxVerdict } from '../../api/sandbox.ts';
import { COMPRESSION, type Simulation } from '../../core/delivery/simulation.ts';
import { parseEventMeta, parseSimulation } from '../../core/events/event-meta.ts';
import { refMs, refOfStreamId, streamIdOfRef } from '../../core/ids/refs.ts';
import { dispositionOf, YOUNG_MS } from '../../core/routing/event-disposition.ts';
import { notedReason } from '../../core/routing/told-reasons.ts';
import type { RedisClient } from '../../redis/client.ts';
import { readProgress } from '../../redis/inbox-reader.ts';
import { type InboxRef, inboxMember, parseInboxMember } from '../../redis/inbox-store.ts';
import { bucketOf, integrationKeys, queueKeys, sandboxKeys, tenantKeys } from '../../redis/keys.ts';
import type { InboxGate, SandboxSource } from '../../redis/sandbox-source.ts';
import { createSandboxStore, type SandboxLimits } from '../../redis/sandbox-store.ts';
import { reportDelivery } from './delivery-report.ts';
import { type SentAttempt, sentField } from './run-deliveries.ts';
import { openRun, type RunView } from './run-view.ts';

/** Maximum number of verdicts per page, and of integrations per event. */
const VERDICTS = 1_000;
const INTEGRATIONS = 100;
/** If the workspace has more names than this, integrations without a subscription are left out. */
const NAMES = 1_000;
const DEFAULT_LIMIT = 50;
const EVENTS = 1_000;

export interface PageAsked {
  readonly limit?: number | undefined;
  /** `<ref>.<queue>` of the last event on the previous page. */
  readonly cursor?: string | undefined;
}

export interface RunReportReader {
  /** Reads the report. Returns undefined if the run does not exist or has ended. */
  readonly read: (tenant: string, run: string, page: PageAsked) => Promise<RunReport | undefined>;
}

interface ListedEvent {
  readonly ref: string;
  readonly queue: string;
  readonly groupKey: string;
  readonly bytes: number;
}

/** Data shared by all events in a queue. */
interface QueueView {
  readonly name: string;
  readonly gen: string;
  readonly cursor: string;
  readonly behind: ReadonlyMap<string, string>;
  readonly integrations: readonly IntegrationView[];
  readonly left: number;
}

interface IntegrationView {
  readonly id: string;
  readonly state: 'pending' | 'active' | 'closed';
  /** Inbox that receives the events now, or received them in this run. */
  readonly inbox: InboxRef | undefined;
  readonly subscribed: boolean;
}

/** What production says of the inboxes in a queue, by integration. */
type Gates = ReadonlyMap<string, InboxGate>;

const NO_GATE: InboxGate = { integration: {}, subscription: {}, activations: new Map() };

/** Creates reports on the results of a run. Gate state is the only thing read from production. */
export function createRunReports(
  redis: RedisClient,
  source: SandboxSource,
  nowMs: () => number,
  limits?: SandboxLimits,
): RunReportReader {
  const store = createSandboxStore(redis, nowMs, limits);

  return {
    async read(tenant, run, { limit = DEFAULT_LIMIT, cursor = '' }) {
      const known = await store.readRun(tenant, run);
      if (known === undefined) return undefined;
      const view = await openRun(redis, source, nowMs, tenant, run, known);
      const queues = await Promise.all(view.queues.map(queue => readQueueView(redis, source, view, queue)));
      const all = (await Promise.all(queues.map(queue => listEvents(view, queue)))).flat();
      const listed = all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).filter(each => keyOf(each) > cursor);
      const widest = Math.max(1, ...queues.map(({ integrations }) => integrations.length));
      const page = listed.slice(0, Math.min(limit, Math.max(1, Math.floor(VERDICTS / widest))));
      const full = (await store.readRoom(tenant, run)) <= 0;
      const gates = new Map(
        await Promise.all(queues.map(async queue => [queue.name, await readGates(source, view, queue, page)] as const)),
      );
      const reading = { nowMs: nowMs(), view, queues, gates, full };
      const last = page.at(-1);
      return {
        tenantPublicId: tenant,
        runId: run,
        sandbox: true,
        begunAt: new Date(known.begunMs).toISOString(),
        endsAt: new Date(known.endsMs).toISOString(),
        compression: COMPRESSION,
        totals: { events: all.length, ...(await readTotals(view)) },
        data: await Promise.all(page.map(each => describeEvent(reading, each))),
        nextCursor: last !== undefined && listed.length > page.length ? keyOf(last) : null,
      };
    },
  };
}

function keyOf({ ref, queue }: ListedEvent): string {
  return `${ref}.${queue}`;
}

async function readQueueView(
  redis: RedisClient,
  source: SandboxSource,
  view: RunView,
  name: string,
): Promise<QueueView> {
  const t = tenantKeys(view.tenant);
  const q = queueKeys(view.tenant, name);
  const [meta, behind, subscribers, names] = await Promise.all([
    view.ofRun.readHash(q.meta),
    view.ofRun.readHash(q.behind),
    redis.readHash(t.subs(name)),
    redis.call('hlen', t.index),
  ]);
  const inboxes = new Map<string, InboxRef>();
  for (const [integration, member] of Object.entries(subscribers)) {
    inboxes.set(integration, parseInboxMember(`${integration}/${member}`));
  }
  // Inboxes of the run take precedence over the current subscription.
  for (const [member, queue] of view.inboxes) {
    const inbox = parseInboxMember(member);
    if (queue === name) inboxes.set(inbox.integration, inbox);
  }
  const index = Number(names) <= NAMES ? Object.keys(await redis.readHash(t.index)) : [];
  const others = index.flatMap(each => (each.startsWith('i:') ? [each.slice(2)] : []));
  const ids = [...new Set([...inboxes.keys(), ...others.toSorted()])];
  const integrations = await Promise.all(
    ids.slice(0, INTEGRATIONS).map(async (id): Promise<IntegrationView> => {
      const state = await source.readState(id);
      const known = state === 'active' || state === 'pending' ? state : 'closed';
      return { id, state: known, inbox: inboxes.get(id), subscribed: id in subscribers };
    }),
  );
  return {
    name,
    gen: meta.gen ?? '',
    cursor: meta.cur ?? '0-0',
    behind: new Map(Object.entries(behind)),
    integrations,
    left: ids.length - integrations.length,
  };
}

async function readGates(
  source: SandboxSource,
  { tenant }: RunView,
  { name: queue, integrations }: QueueView,
  page: readonly ListedEvent[],
): Promise<Gates> {
  const groupKeys = new Set(page.flatMap(event => (event.queue === queue ? [event.groupKey] : [])));
  groupKeys.delete('');
  const gates = integrations.map(async ({ id, inbox }) => {
    return [id, inbox && (await source.readGate({ tenant, queue, inbox }, [...groupKeys]))] as const;
  });
  return new Map((await Promise.all(gates)).flatMap(([id, gate]) => (gate === undefined ? [] : [[id, gate]])));
}

async function listEvents(view: RunView, { name, gen }: QueueView): Promise<ListedEvent[]> {
  const { events } = queueKeys(view.tenant, name, gen);
  const entries = (await view.ofRun.call('xrange', events, '-', '+', 'COUNT', EVENTS)) as [string, string[]][];
  return entries.map(([id, [, groupKey = '', , bytes = '0']]) => ({
    ref: refOfStreamId(id),
    queue: name,
    groupKey,
    bytes: Number(bytes),
  }));
}

async function readTotals(view: RunView): Promise<Omit<RunReport['totals'], 'events'>> {
  const totals = { deliveries: 0, pending: 0, delivered: 0, dead: 0, tokens: 0 };
  const inboxes = [...view.inboxes.keys()].map(parseInboxMember);
  for (const { integration, sub } of inboxes) {
    const fields = await view.ofRun.readHash(integrationKeys(integration).sub(sub));
    const count = (name: string) => Number(fields[`n:${name}`] ?? 0);
    totals.deliveries += count('routed');
    totals.delivered += count('delivered');
    totals.dead += count('dead');
    totals.pending += count('routed') - count('delivered') - count('dead') - count('expired');
  }
  for (const integration of new Set(inboxes.map(each => each.integration))) {
    const ledger = await view.ofRun.readHash(integrationKeys(integration).ledger);
    // Only use fields holding the total per payer: the hash also contains daily totals and a marker.
    for (const [field, value] of Object.entries(ledger)) if (/^acc_\w+$/.test(field)) totals.tokens += Number(value);
  }
  return totals;
}

interface Reading {
  readonly nowMs: number;
  readonly view: RunView;
  readonly queues: readonly QueueView[];
  /** By name of the queue. */
  readonly gates: ReadonlyMap<string, Gates>;
  /** Whether the run has reached its delivery limit. */
  readonly full: boolean;
}

async function describeEvent(reading: Reading, listed: ListedEvent): Promise<RunEvent> {
  const { view } = reading;
  const { ref, groupKey, bytes } = listed;
  const queue = reading.queues.find(({ name }) => name === listed.queue) as QueueView;
  const { bodies, why } = queueKeys(view.tenant, queue.name, queue.gen);
  const [metas, told] = await Promise.all([
    view.ofRun.run('metas', [bodies], [streamIdOfRef(ref)]),
    view.ofRun.call('hget', why(bucketOf(refMs(ref))), ref),
  ]);
  const [[text = '{}']] = metas as [[text?: string]];
  const meta = parseEventMeta(text, groupKey, ref);
  const simulation = parseSimulation(text);
  const verdicts = await Promise.all(
    queue.integrations.map(each => describeVerdict(reading, queue, each, listed, simulation, `${told ?? ''}`)),
  );
  return {
    id: meta.id,
    queue: queue.name,
    type: meta.type ?? null,
    groupKey: groupKey === '' ? null : groupKey,
    bytes,
    acceptedAt: new Date(refMs(ref)).toISOString(),
    failCode: simulation.failCode ?? null,
    failCount: simulation.failCount ?? null,
    integrations: verdicts.toSorted((a, b) => Number(b.delivery !== null) - Number(a.delivery !== null)),
    moreIntegrations: queue.left,
  };
}

async function describeVerdict(
  { nowMs, view, gates, full }: Reading,
  queue: QueueView,
  integration: IntegrationView,
  { ref, groupKey, bytes }: ListedEvent,
  simulation: Simulation,
  told: string,
): Promise<SandboxVerdict> {
  const { id, state, inbox, subscribed } = integration;
  const { subscription, activations } = gates.get(queue.name)?.get(id) ?? NO_GATE;
  const since = activations.get(groupKey);
  const found = inbox && (await readProgress(view.ofRun, inbox, ref));
  const progress = found?.answer === 'OK' ? found.progress : undefined;
  const subscribedMs = subscribed ? Number(subscription.since ?? 0) : undefined;
  const noted = notedReason(told, id, { routedBeforeMs: refMs(ref) + YOUNG_MS, subscribedMs });
  const behindAt = inbox && queue.behind.get(inboxMember(inbox));
  const { disposition, reason } = dispositionOf({
    id: streamIdOfRef(ref),
    groupKey,
    cursor: queue.cursor,
    integration: state,
    subscription: subscribed ? { behindAt } : undefined,
    activatedSinceMs: since === undefined ? undefined : Number(since),
    nowMs,
    progress,
    noted,
  });
  const verdict = {
    integrationPublicId: id,
    verdict: disposition,
    reason: reason ?? (disposition === 'waiting' ? waitsFor(subscription.route, behindAt, full) : null),
  };
  if (progress === undefined || inbox === undefined) return { ...verdict, delivery: null };
  const sent = await readSent(view, inbox, ref);
  const facts = { run: view.run, inbox, ref, bytes, simulation, progress, sent, subscription };
  return { ...verdict, delivery: reportDelivery(facts) };
}

function waitsFor(route: string | undefined, behindAt: string | undefined, full: boolean): string | null {
  if (behindAt !== undefined) return route === 'paused' ? 'paused' : null;
  return full ? 'run_full' : null;
}

async function readSent(view: RunView, inbox: InboxRef, ref: string): Promise<SentAttempt | undefined> {
  const { sent } = sandboxKeys(view.tenant, view.run);
  const text = await view.ofRun.call('hget', sent, sentField(inbox, ref));
  return typeof text === 'string' ? (JSON.parse(text) as SentAttempt) : undefined;
}
