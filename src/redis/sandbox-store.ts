import type { Argument, RedisClient } from './client.ts';
import { createIngressOperations, type IngestOutcome, type IngressEvent, type IngressQueue } from './ingress-store.ts';
import { queueKeys, sandboxKeys, sandboxUseKeys } from './keys.ts';
import { createSandboxClient } from './sandbox-client.ts';

/** How long a run is kept, from its first event on. */
export const RUN_KEPT_MS = 24 * 3_600_000;

/** Bounds of sandbox runs; those of a workspace are for everything that its runs of the last 24 h hold. */
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

/** RUN_FULL: the run takes no more; SPENT: the workspace's runs together hold all that they may, until then at least. */
export type SandboxOutcome =
  | IngestOutcome
  | { readonly answer: 'RUN_FULL' }
  | { readonly answer: 'SPENT'; readonly untilMs: number };

export interface SandboxRun {
  readonly begunMs: number;
  readonly endsMs: number;
}

/** The runs of the sandbox. Of production only the queue's configuration is used, which the caller has read. */
export interface SandboxStore {
  /** Stores one event in a run, once per event id; makes the run if it is not there. */
  readonly ingest: (
    tenant: string,
    queue: string,
    run: string,
    config: IngressQueue,
    event: IngressEvent,
  ) => Promise<SandboxOutcome>;
  /** undefined: there is no such run, or it has ended. */
  readonly readRun: (tenant: string, run: string) => Promise<SandboxRun | undefined>;
  /** Notes that events of a run were routed, for the limits. */
  readonly countDeliveries: (tenant: string, run: string, count: number) => Promise<void>;
  /** How many deliveries the run may still make. */
  readonly readRoom: (tenant: string, run: string) => Promise<number>;
}

/** Nothing of a run is removed before its end: retention reaches farther than that. */
const RETENTION_MS = 2 * RUN_KEPT_MS;

export function createSandboxStore(
  redis: RedisClient,
  nowMs: () => number,
  limits: SandboxLimits = SANDBOX_LIMITS,
): SandboxStore {
  async function enter(tenant: string, run: string, bytes: number) {
    const { runs, use } = sandboxUseKeys(tenant);
    const { eventsOfRun, deliveriesOfRun, ...all } = limits;
    const bounds = [all.runs, eventsOfRun, all.events, all.bytes, deliveriesOfRun, all.deliveries];
    const reply = await redis.run('sandbox-enter', [runs, use], [nowMs(), run, bytes, RUN_KEPT_MS, ...bounds]);
    return reply as [answer: 'OK' | 'FULL' | 'SPENT', ms?: string];
  }

  async function count(tenant: string, run: string, counts: Readonly<Record<string, number>>): Promise<void> {
    await redis.run('sandbox-count', [sandboxUseKeys(tenant).use], [run, ...Object.entries(counts).flat()]);
  }

  return {
    async ingest(tenant, queue, run, config, event) {
      const [answer, ms] = await enter(tenant, run, bytesOf(event));
      if (answer === 'FULL') return { answer: 'RUN_FULL' };
      if (answer === 'SPENT') return { answer, untilMs: Number(ms) };
      const ofRun = createSandboxClient(redis, tenant, run, Number(ms));
      const s = sandboxKeys(tenant, run);
      const { meta } = queueKeys(tenant, queue);
      const { gen, cfgv, source } = config;
      const fields = {
        ready: '1',
        gen,
        cfgv,
        source,
        state: 'open',
        retentionMs: RETENTION_MS,
        // `enter` has said that there is room: what the run holds of one queue is not bounded again.
        maxBytes: Number.MAX_SAFE_INTEGER,
      };
      const patch: readonly [command: string, key: string, ...args: Argument[]][] = [
        ['HSETNX', s.meta, 'begun', nowMs()],
        ['HSET', s.meta, 'ends', Number(ms)],
        ['SADD', s.queues, queue],
        ['HSET', meta, ...Object.entries(fields).flat()],
      ];
      await writeRun(ofRun, s.meta, patch);
      const { outcomes } = await createIngressOperations(ofRun, nowMs, () => {}).ingest(tenant, queue, config, [event]);
      const outcome = outcomes[0] as IngestOutcome;
      // What was there already takes no room.
      if (outcome.answer !== 'OK') await count(tenant, run, { events: -1, bytes: -bytesOf(event) });
      return outcome;
    },

    async readRun(tenant, run) {
      const { begun, ends } = await redis.readHash(sandboxKeys(tenant, run).meta);
      if (begun === undefined || ends === undefined || Number(ends) <= nowMs()) return undefined;
      return { begunMs: Number(begun), endsMs: Number(ends) };
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

/** Counts the body, and the headers that are kept with it: both are as long as a sender likes. */
function bytesOf({ body, forward, attributes }: IngressEvent): number {
  let bytes = body.length;
  for (const headers of [forward, attributes ?? {}]) {
    for (const name in headers) bytes += name.length + Buffer.byteLength(headers[name] ?? '');
  }
  return bytes;
}

/** Writes to keys of one run, all at once. */
export async function writeRun(
  ofRun: RedisClient,
  meta: string,
  ops: readonly (readonly [command: string, key: string, ...args: Argument[]])[],
): Promise<void> {
  const keys = [meta];
  const args: Argument[] = [0];
  for (const [command, key, ...rest] of ops) {
    let index = keys.indexOf(key) + 1;
    if (index === 0) index = keys.push(key);
    args.push(command, index, rest.length, ...rest);
  }
  await ofRun.run('patch', keys, args);
}
