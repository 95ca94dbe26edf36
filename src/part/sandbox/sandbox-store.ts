import type { IngressEvent, IngressQueue } from '../../record/ingress-store.ts';
import { storedMeta } from '../../record/ingress-store.ts';
import { sandboxKeys, sandboxUseKeys } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript } from '../call.ts';
import { createFindEvent } from '../fate/find-event.ts';
import type { PartClient } from '../inbox/find-part.ts';
import { createIngest } from '../log/ingest.ts';
import { createRunClient, partOfRun } from './run-client.ts';
import { RUN_CFGV, takeOverKey } from './take-over.ts';

const ENTER = readNamedScript(new URL('use-enter.lua', import.meta.url));
const COUNT = readNamedScript(new URL('use-count.lua', import.meta.url));
/** The prefix for the stream name in the `meta` of a run. */
const STREAM_FIELD = 'q:';

/** The time for which a run is kept after its first event. */
export const RUN_KEPT_MS = 24 * 3_600_000;

/** The limits of sandbox runs. The workspace limits are for all of its runs in the last 24 h. */
export interface SandboxLimits {
  readonly eventsOfRun: number;
  /** References: events times the integrations that each is routed to. */
  readonly deliveriesOfRun: number;
  readonly runs: number;
  readonly events: number;
  readonly bytes: number;
  readonly deliveries: number;
}

export const SANDBOX_LIMITS: SandboxLimits = {
  eventsOfRun: 1_000,
  deliveriesOfRun: 10_000,
  runs: 1_000,
  events: 20_000,
  bytes: 64 * 1024 * 1024,
  deliveries: 50_000,
};

/**
 * RUN_FULL: the run takes no more; SPENT: the workspace's runs together hold all that they may, until then at least;
 * GONE: production cannot be read now.
 */
export type SandboxOutcome =
  | { readonly answer: 'OK' | 'DUP'; readonly ref: string }
  | { readonly answer: 'FULL' | 'STALE' | 'CLOSED' | 'GONE' | 'RUN_FULL' }
  | { readonly answer: 'SPENT'; readonly untilMs: number };

export interface SandboxRun {
  readonly begunMs: number;
  readonly endsMs: number;
  /** The names of all streams that have events in the run, in order. */
  readonly queues: readonly string[];
}

/** Sandbox runs. Runs only read the routing state and the queue configuration of production. */
export interface SandboxStore {
  /**
   * Stores a single event in a run and routes it. An event with the same id is only stored once. If the run does not
   * exist, it is created.
   */
  readonly ingest: (
    tenant: string,
    queue: string,
    run: string,
    config: Pick<IngressQueue, 'source'>,
    event: IngressEvent,
  ) => Promise<SandboxOutcome>;
  /** If the run does not exist, or has ended, this is undefined. */
  readonly readRun: (tenant: string, run: string) => Promise<SandboxRun | undefined>;
  /** Records that events of a run have been routed. The limits depend on this number. */
  readonly countDeliveries: (tenant: string, run: string, count: number) => Promise<void>;
  /** The number of deliveries that the run is still allowed to make. */
  readonly readRoom: (tenant: string, run: string) => Promise<number>;
}

/** Returns the ref of an event that the run already has. Only reads, so the keys of the run keep their expiry. */
async function findStored(
  redis: PartClient,
  nowMs: () => number,
  { tenant, queue, run, id }: { tenant: string; queue: string; run: string; id: string },
): Promise<string | undefined> {
  const ofRun = createRunClient(redis, tenant, run, nowMs());
  return (await createFindEvent(ofRun, nowMs)(tenant, queue, { eventId: id }))?.ref;
}

export function createSandboxStore(
  redis: PartClient,
  nowMs: () => number,
  limits: SandboxLimits = SANDBOX_LIMITS,
): SandboxStore {
  async function enter(tenant: string, run: string, bytes: number) {
    const { bytes: mostBytes, ...most } = limits;
    return (await redis.runNamed(ENTER, {
      keys: sandboxUseKeys(tenant),
      args: { now: nowMs(), run, bytes, kept: RUN_KEPT_MS, mostBytes, ...most },
    })) as [answer: 'OK' | 'FULL' | 'SPENT', ms?: string];
  }

  async function count(tenant: string, run: string, counts: Readonly<Record<string, number>>): Promise<void> {
    const more = Object.entries(counts).flat();
    await callScript(redis, COUNT, { keys: sandboxUseKeys(tenant), args: { run }, more });
  }

  /** Stores an event. The limits of the run must have been checked before. */
  async function store(
    { tenant, queue, run, endsMs }: { tenant: string; queue: string; run: string; endsMs: number },
    { source }: Pick<IngressQueue, 'source'>,
    event: IngressEvent,
  ): Promise<SandboxOutcome & { readonly references?: number }> {
    const ofRun = createRunClient(redis, tenant, run, endsMs);
    const { meta } = sandboxKeys(tenant, run);
    await ofRun.note('HSETNX', meta, ['begun', nowMs(), 'ends', endsMs, `${STREAM_FIELD}${queue}`, '1']);
    const { id: senderId, groupKey = '', body } = event;
    if (!(await takeOverKey({ redis, ofRun, tenant, queue }, groupKey))) return { answer: 'GONE' };
    const item = { senderId, groupKey, meta: storedMeta(event, source), body };
    const stored = await createIngest(ofRun, nowMs)(partOfRun(tenant, queue), RUN_CFGV, [item]);
    if (stored.answer !== 'OK') return stored;
    const [outcome] = stored.events;
    // There are separate limits for runs.
    if (outcome === undefined || outcome.answer === 'RESERVED' || outcome.answer === 'LIMIT') return { answer: 'GONE' };
    return 'ref' in outcome ? { ...outcome, references: stored.references } : { answer: outcome.answer };
  }

  return {
    async ingest(tenant, queue, run, config, event) {
      const [answer, ms] = await enter(tenant, run, bytesOf(event));
      // The response to the event that used up the capacity may have been lost.
      const earlier =
        answer === 'OK' ? undefined : await findStored(redis, nowMs, { tenant, queue, run, id: event.id });
      if (earlier !== undefined) return { answer: 'DUP', ref: earlier };
      if (answer === 'FULL') return { answer: 'RUN_FULL' };
      if (answer === 'SPENT') return { answer, untilMs: Number(ms) };
      const { references = 0, ...outcome } = await store({ tenant, queue, run, endsMs: Number(ms) }, config, event);
      // If it already exists, it does not need any room.
      if (outcome.answer !== 'OK') await count(tenant, run, { events: -1, bytes: -bytesOf(event) });
      else if (references > 0) await count(tenant, run, { deliveries: references });
      return outcome;
    },

    async readRun(tenant, run) {
      const { begun, ends, ...rest } = await redis.readHash(sandboxKeys(tenant, run).meta);
      if (begun === undefined || ends === undefined || Number(ends) <= nowMs()) return undefined;
      const streams = Object.keys(rest).filter(field => field.startsWith(STREAM_FIELD));
      const queues = streams.map(field => field.slice(STREAM_FIELD.length)).toSorted();
      return { begunMs: Number(begun), endsMs: Number(ends), queues };
    },

    countDeliveries: (tenant, run, by) => count(tenant, run, { deliveries: by }),

    async readRoom(tenant, run) {
      const fields = ['deliveries', `deliveries:${run}`];
      const counted = (await redis.call('hmget', sandboxUseKeys(tenant).use, ...fields)) as (string | null)[];
      const [all = 0, own = 0] = counted.map(Number);
      return Math.min(limits.deliveriesOfRun - own, limits.deliveries - all);
    },
  };
}

/**
 * Returns the bytes of the body and of the headers that are stored with it, because the sender can choose the length of
 * both.
 */
function bytesOf({ body, forward, attributes }: IngressEvent): number {
  let bytes = body.length;
  for (const headers of [forward, attributes ?? {}]) {
    for (const name in headers) bytes += name.length + Buffer.byteLength(headers[name] ?? '');
  }
  return bytes;
}
