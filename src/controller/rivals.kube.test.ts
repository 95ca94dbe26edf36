import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { INSTANCE_LABEL } from '../api/well-known.ts';
import { connect } from '../kube/client.ts';
import { createLeaseStore, LEASE_NAME, leaseLabels } from '../kube/lease.ts';
import type { AnyObject, ObjectName } from '../kube/object.ts';
import { LEASES, NAMESPACES } from '../kube/resource.ts';
import { createLogger } from '../telemetry/log.ts';
import { systemClock } from '../time/clock.ts';
import { createElector, type Elector } from './engine/elector.ts';
import { createRivals } from './rivals.ts';

const ROUNDS = 20;
/** Rounds that run at the same time, each in namespaces of its own: most of their time is waiting. */
const LANES = 4;
const run = Date.now();
const pair = (suffix: string) => [`rivals-a-${run}${suffix}`, `rivals-b-${run}${suffix}`] as const;
const NAMED = pair('');
const KILLED = pair('-killed');
const LANE_PAIRS = Array.from({ length: LANES }, (_, lane) => pair(`-${lane}`));
const ALL_NAMED = [...NAMED, ...KILLED, ...LANE_PAIRS.flat()];
const at = (namespace: string): ObjectName => ({ namespace, name: LEASE_NAME });
const log = createLogger({ level: 'silent' });
const client = connect({ kubeconfig: inject('kubeconfig') });

beforeAll(async () => {
  for (const name of ALL_NAMED) await client.create(NAMESPACES, { name }, {});
});

afterAll(async () => {
  for (const name of ALL_NAMED) await client.remove(NAMESPACES, { name });
  await client.close();
});

async function until(what: string, holds: () => boolean, withinMs = 60_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await delay(5);
  }
}

/** The controllers of a test. At most one of them may lead. */
function createContest() {
  const leading = new Set<string>();
  let most = 0;
  let terms = 0;
  const runs: { readonly stop: AbortController; readonly end: Promise<void> }[] = [];
  return {
    leading,
    most: () => most,
    terms: () => terms,
    join: (namespace: string, instance: string, store?: string): Elector => {
      const rivals = createRivals({ client, readStore: async () => store, instance, namespace, clock: systemClock });
      const elector = createElector({
        leases: createLeaseStore(client, at(namespace), { labels: leaseLabels(instance), store: () => store }),
        admits: rivals.admits,
        identity: `${namespace}-${runs.length}`,
        retryPeriodMs: 200,
        clock: systemClock,
        log,
      });
      const stop = new AbortController();
      const onStartedLeading = async ({ signal }: { readonly signal: AbortSignal }) => {
        terms++;
        leading.add(namespace);
        most = Math.max(most, leading.size);
        const over = AbortSignal.any([signal, stop.signal]);
        if (!over.aborted) await new Promise(resolve => over.addEventListener('abort', resolve, { once: true }));
        leading.delete(namespace);
      };
      runs.push({ stop, end: elector.run(stop.signal, { onStartedLeading }) });
      return elector;
    },
    end: async () => {
      for (const { stop } of runs) stop.abort();
      await Promise.all(runs.map(({ end }) => end));
    },
  };
}

test.concurrent(`exactly one of two installations with the same name leads if both start at the same time, ${ROUNDS} times`, async () => {
  const round = async (number: number, namespaces: readonly string[]) => {
    const contest = createContest();
    const instance = `same-${number}`;
    for (const namespace of number % 2 === 0 ? namespaces : namespaces.toReversed()) contest.join(namespace, instance);
    await until('one controller leads', () => contest.leading.size > 0);
    await delay(500);
    expect([contest.most(), contest.terms()]).toEqual([1, 1]);
    await contest.end();
  };
  const inLane = async (namespaces: readonly string[], lane: number) => {
    for (let each = 0; each < ROUNDS / LANES; each++) await round((lane * ROUNDS) / LANES + each, namespaces);
  };
  await Promise.all(LANE_PAIRS.map(inLane));
});

test.concurrent('a killed controller keeps the other installation waiting until its Lease is deleted', async () => {
  const name = at(KILLED[0]);
  const contest = createContest();
  contest.join(KILLED[0], 'killed');
  await until('the controller leads', () => contest.leading.size > 0);
  const held = await client.get<AnyObject & { readonly spec: object }>(LEASES, name);
  expect(held?.metadata.labels).toMatchObject({ [INSTANCE_LABEL]: 'killed' });
  await contest.end();
  const released = await client.get<AnyObject>(LEASES, name);
  const { resourceVersion = '', labels = {} } = released?.metadata ?? {};
  await client.update(LEASES, name, { metadata: { resourceVersion, labels }, spec: held?.spec });
  const other = createContest();
  const elector = other.join(KILLED[1], 'killed');
  await until('the controller is refused', () => elector.refusal() === 'first');
  await delay(13_000);
  expect(other.terms()).toBe(0);
  await client.remove(LEASES, name);
  await until('the controller leads', () => other.leading.size === 1);
  await other.end();
});

test('two installations with different names both lead', async () => {
  const contest = createContest();
  contest.join(NAMED[0], 'green');
  contest.join(NAMED[1], 'blue');
  await until('both controllers lead', () => contest.leading.size === 2);
  await contest.end();
});

test('at most one of two replicas of two installations leads, and the other installation continues after both have stopped', async () => {
  const [contest, others] = [createContest(), createContest()];
  contest.join(NAMED[0], 'twice');
  contest.join(NAMED[0], 'twice');
  await until('one controller leads', () => contest.leading.size > 0);
  const waiting = [others.join(NAMED[1], 'twice'), others.join(NAMED[1], 'twice')];
  await until('all other controllers wait', () => waiting.every(({ refusal }) => refusal() === 'first'));
  expect(others.terms()).toBe(0);
  await contest.end();
  await until('another controller leads', () => others.leading.size === 1);
  await until('no replica is refused', () => waiting.every(({ refusal }) => refusal() === undefined));
  await others.end();
});

test('a leader whose Lease was deleted stops if another installation is leading', async () => {
  const contest = createContest();
  const elector = contest.join(NAMED[0], 'deleted');
  await until('the controller leads', () => contest.leading.size === 1);
  // Another test has left the Lease, which was released.
  await client.remove(LEASES, at(NAMED[1]));
  const labels = leaseLabels('deleted');
  await client.create(LEASES, at(NAMED[1]), { metadata: { labels }, spec: { holderIdentity: 'rival' } });
  await delay(1_000);
  expect(contest.leading.size).toBe(1);
  await client.remove(LEASES, at(NAMED[0]));
  await until('the controller stops', () => contest.leading.size === 0 && elector.refusal() === 'later');
  expect(await client.get(LEASES, at(NAMED[0]))).toBeUndefined();
  await client.remove(LEASES, at(NAMED[1]));
  await until('the controller leads again', () => contest.leading.size === 1);
  await contest.end();
});

test('a leader whose Lease was deleted continues if no other installation leads', async () => {
  const contest = createContest();
  contest.join(NAMED[0], 'alone');
  await until('the controller leads', () => contest.leading.size === 1);
  await client.remove(LEASES, at(NAMED[0]));
  await expect.poll(() => client.get(LEASES, at(NAMED[0])), { timeout: 20_000 }).toBeDefined();
  await delay(1_000);
  expect([contest.terms(), contest.leading.size]).toEqual([1, 1]);
  await contest.end();
});
