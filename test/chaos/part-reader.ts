import type { Cluster, Redis } from 'ioredis';
import { partKeys } from '../../src/part/keys.ts';
import { accountKeys } from '../../src/redis/keys.ts';
import type { ControlState } from './control-state.ts';
import { type Sample, SUBSCRIPTIONS, type Subscription } from './record.ts';

/**
 * A subscription's deliveries, by state. `ended`: the number of claims whose event has ended during the attempt, for
 * example because the result of an earlier claim arrived. `counted`: the number of all claims according to its
 * counters.
 */
export interface Counts {
  readonly routed: number;
  readonly pending: number;
  readonly inflight: number;
  readonly retrying: number;
  readonly delivered: number;
  readonly dead: number;
  readonly skipped: number;
  readonly expired: number;
  readonly ended: number;
  readonly counted: number;
}

/** A part's content, read in a single step. */
export interface PartState {
  readonly counts: Readonly<Record<Subscription, Counts>>;
  /** The tokens charged to the part, and the tokens that have been reported to its account. */
  readonly charged: number;
  readonly settled: number;
}

/** Reads a part using a separate connection, which is closed by `stop`. */
export interface PartReader {
  readonly read: () => Promise<PartState>;
  /** Reads the number of claims of the part, about 20 times per second while Redis responds. */
  readonly samples: readonly Sample[];
  readonly stop: () => void;
}

const SAMPLE_MS = 50;
const READ = `#!lua flags=no-writes
return { redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]),
  redis.call('ZRANGE', KEYS[4], 0, -1), redis.call('HGET', KEYS[5], 'used') or '0' }`;

const pairsOf = (list: readonly string[]) =>
  new Map(list.flatMap((each, at) => (at % 2 ? [] : [[each, list[at + 1] ?? '']])));

export function startPartReader(redis: Redis | Cluster, state: ControlState): PartReader {
  redis.on('error', () => {});
  const keys = partKeys(state.part);
  const samples: Sample[] = [];
  let isSampling = false;

  const timer = setInterval(() => {
    if (isSampling) return;
    isSampling = true;
    redis
      .hlen(keys.claims)
      .then(
        claims => samples.push({ atMs: performance.now(), claims }),
        () => {},
      )
      .finally(() => {
        isSampling = false;
      });
  }, SAMPLE_MS);

  async function read(): Promise<PartState> {
    const names = [keys.counts, keys.pending, keys.claims, keys.retries, keys.meta];
    const [texts, pending, claims, retries, used] = (await redis.eval(READ, names.length, ...names)) as [
      string[],
      string[],
      string[],
      string[],
      string,
    ];
    const countsBySlot = pairsOf(texts);
    const waiting = new Set(retries);
    const countsOf = (slot: string): Counts => {
      const numbers = (countsBySlot.get(slot) ?? '').split(' ').map(Number);
      const [counted = 0, routed = 0, , delivered = 0, dead = 0, expired = 0, skipped = 0] = numbers;
      const mine = pending.filter(each => each.startsWith(slot));
      const retrying = mine.filter(each => waiting.has(each.split('\0')[0] as string)).length;
      const claimed = [...pairsOf(claims)].filter(([lane]) => lane.startsWith(slot));
      const ended = claimed.filter(([, claim]) => claim.startsWith('x')).length;
      return {
        routed,
        pending: mine.length - retrying,
        inflight: claimed.length - ended,
        retrying,
        delivered,
        dead,
        skipped,
        expired,
        ended,
        counted,
      };
    };
    return {
      counts: Object.fromEntries(SUBSCRIPTIONS.map(name => [name, countsOf(state.slots[name])])) as PartState['counts'],
      charged: Number(used),
      settled: Number((await redis.hget(accountKeys(state.payer).meta, 'used')) ?? '0'),
    };
  }

  return {
    read,
    samples,
    stop() {
      clearInterval(timer);
      redis.disconnect();
    },
  };
}

/** Returns the inconsistencies between a part's counts. Each routed delivery must be in exactly one state. */
export function checkConservation({ counts }: PartState): string[] {
  return Object.entries(counts).flatMap(([name, { routed, ended, counted, ...states }]) => {
    const sum = Object.values(states).reduce((total, count) => total + count, 0);
    const claims = states.inflight + ended;
    return [
      ...(sum === routed ? [] : [`${name}: routed ${routed}, and ${sum} in ${JSON.stringify(states)}`]),
      ...(counted === claims ? [] : [`${name}: ${claims} claims, and ${counted} counted`]),
    ];
  });
}
