import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS, type KindName } from '../../src/api/kinds/kinds.ts';
import { connect, type KubeClient } from '../../src/kube/client.ts';
import { resourceOf } from '../../src/kube/resource.ts';
import { readCpuSeconds } from '../bench/process-cpu.ts';
import type { Sluice } from '../support/sluice.ts';
import { eventually } from '../system/support/deadline.ts';
import { type Installation, install } from '../system/support/installation.ts';
import { type Observer, observe } from '../system/support/observer.ts';
import { apply, block, tenant } from '../system/support/world.ts';
import { readApiWrites, writesBetween } from './api-writes.ts';
import { type Change, type Cost, costsOf } from './costs.ts';
import {
  activationName,
  createAll,
  PARTNER,
  PRODUCER,
  pairOf,
  populate,
  type Size,
  SUBSCRIPTIONS_EACH,
  subscriptionName,
  type Wanted,
} from './population.ts';
import { AS_IN_A_CONTAINER, CONTAINER_MIB, readResident } from './process-memory.ts';
import { type CommandRecorder, recordCommands } from './redis-commands.ts';
import { recordStatuses } from './statuses.ts';

/** The size, as a fraction of the largest documented tenant. `make test-scale` uses 1. */
const SHARE = Number(process.env.SCALE ?? 0.025);
const SIZE: Size = { activations: 100_000 * SHARE, subscriptions: 10_000 * SHARE };
/** The maximum memory for this size. An empty controller uses less than half of `CONTAINER_MIB`. */
const MOST_MEMORY_MIB = (CONTAINER_MIB / 2) * (1 + SHARE);
/** The timeout of each step, in milliseconds. */
const MOST_MS = 240_000 + 3_600_000 * SHARE;

let installed: Installation;
let client: KubeClient;
let observer: Observer;
let commands: CommandRecorder;
let sluice: Sluice;
const wanted = populate(SIZE);
const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

beforeAll(async () => {
  installed = await install();
  client = connect({ kubeconfig: installed.cluster.kubeconfig });
  observer = observe(installed.cluster.kubeconfig);
  commands = await recordCommands(installed.redis.url);
  await apply(installed.cluster, [...tenant(PRODUCER), ...tenant(PARTNER)]);
  const startedMs = performance.now();
  await createAll(client, wanted);
  const tookMs = performance.now() - startedMs;
  console.log(`created ${wanted.length} objects in ${seconds(tookMs)} s`);
}, MOST_MS);

afterAll(async () => {
  commands?.close();
  await observer?.close();
  await client?.close();
  await installed?.stop();
}, MOST_MS);

/** Waits until the controller leads and has no waiting keys or active workers, three times in a row. */
async function settled(): Promise<void> {
  let quiet = 0;
  const isQuiet = async () => {
    const busy =
      (await sluice.metric('workqueue_depth')) +
      (await sluice.metric('controller_runtime_active_workers')) +
      (await sluice.metric('workqueue_unfinished_work_seconds'));
    const leads = (await sluice.metric('sluice_controller_term_started')) === 1;
    quiet = busy === 0 && leads ? quiet + 1 : 0;
    return quiet === 3;
  };
  // Each check scrapes the metrics of the controller several times.
  const everyMs = (elapsedMs: number) => (elapsedMs < 10_000 ? 200 : 2_000);
  await eventually('the controller is idle', isQuiet, { withinMs: MOST_MS, everyMs });
}

/** Waits until clients stop sending commands to Redis. A sweep takes several seconds. */
async function unread(): Promise<void> {
  let quiet = 0;
  const isQuiet = async () => {
    quiet = commands.take().length === 0 ? quiet + 1 : 0;
    return quiet === 3;
  };
  await eventually('Redis is idle', isQuiet, { withinMs: MOST_MS, everyMs: 200 });
}

/** Waits until a process started at `beganMs` leads with all routes applied. Returns the duration in milliseconds. */
async function ledAfterMs(beganMs: number): Promise<number> {
  const led = async () => {
    const lines = await sluice.logLines();
    return lines
      .map(({ msg, time }) => (msg === 'starting the controllers' ? Date.parse(String(time)) : 0))
      .find(ms => ms > beganMs);
  };
  return (await eventually('the controller leads', led, { withinMs: MOST_MS, everyMs: 100 })).value - beganMs;
}

interface Listed {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly conditions?: readonly { type: string; status: string; observedGeneration: number }[];
  };
}

/** Returns the number of objects whose condition is True for their current generation. */
async function countSaying(kind: KindName, condition: string): Promise<number> {
  const says = ({ metadata, status }: Listed): boolean =>
    status?.conditions?.some(
      ({ type, status: is, observedGeneration }) =>
        type === condition && is === 'True' && observedGeneration === metadata.generation,
    ) === true;
  return (await client.list(resourceOf(kind), says)).items.filter(Boolean).length;
}

const manifestOf = ({ kind, namespace, name, spec }: Wanted, more: object = {}) => ({
  kind,
  metadata: { name, namespace },
  spec: { ...spec, ...more },
});
const findWanted = (name: string): Wanted => wanted.find(each => each.name === name) as Wanted;

/** Applies a change once, and returns its cost. */
async function costOf({ make }: Change, attempt: number): Promise<Cost> {
  await Promise.all([unread(), settled()]);
  const before = await readApiWrites(installed.cluster);
  commands.take();
  const cpuBefore = await readCpuSeconds([sluice.pid]);
  await make(attempt);
  await delay(500);
  const cpuMs = ((await readCpuSeconds([sluice.pid])) - cpuBefore) * 1_000;
  const taken = commands.take();
  return { commands: taken, writes: writesBetween(before, await readApiWrites(installed.cluster)), cpuMs };
}

async function expectBounded(when: string): Promise<void> {
  const { now, most } = await readResident(sluice.pid);
  console.log(`controller ${when}: ${Math.round(now)} MiB resident, ${Math.round(most)} MiB at most`);
  if (process.platform === 'linux') expect(most).toBeLessThan(MOST_MEMORY_MIB);
}

/** The CPU time of the controller until everything was applied for the first time, in milliseconds. */
let allCpuMs = Number.NaN;

/** The CPU time that an idle controller may use during a measurement, even on a slow machine. */
const IDLE_CPU_MS = 500;

/** Returns whether a change uses a small fraction of the CPU time for applying all objects. */
const isCheap = ({ cpuMs }: Cost): boolean =>
  process.platform !== 'linux' || cpuMs < Math.max(allCpuMs / 40, IDLE_CPU_MS);

function expectCheap(what: string, cost: Cost): void {
  const { cpuMs, commands: sent } = cost;
  console.log(`${what}: ${sent.length} commands, ${((cpuMs / allCpuMs) * 100).toFixed(3)} % of the CPU of all`);
  expect(isCheap(cost), `${cpuMs} ms of ${allCpuMs} ms`).toBe(true);
}

describe(`a tenant with ${SIZE.activations} activations and ${SIZE.subscriptions} subscriptions`, () => {
  const { activations, subscriptions } = SIZE;

  it('is applied with one status for each object, and a second one for the salt of each subscription', {
    timeout: MOST_MS,
  }, async () => {
    // On a busy machine, the API server sometimes refuses a request, which the client then repeats.
    const before = await readApiWrites(installed.cluster, 'done');
    const statuses = await recordStatuses(client, resourceOf('Activation'));
    const beganMs = Date.now();
    sluice = await installed.start({ role: 'controller', env: AS_IN_A_CONTAINER });
    await ledAfterMs(beganMs);
    await settled();
    // On a busy machine, the controllers have nothing to do for a moment before their first objects arrive.
    const isApplied = async () =>
      (await countSaying('Activation', 'Effective')) === activations &&
      (await countSaying('Subscription', 'Live')) === subscriptions;
    await eventually('all objects are applied', isApplied, { withinMs: MOST_MS, everyMs: 5_000 });
    await settled();
    console.log(`applied after ${seconds(Date.now() - beganMs)} s`);
    allCpuMs = (await readCpuSeconds([sluice.pid])) * 1_000;
    const writes = writesBetween(before, await readApiWrites(installed.cluster, 'done'));
    console.log(writes);
    const warnings = (await sluice.logLines()).filter(({ level }) => level !== 'debug' && level !== 'info');
    // The client repeats such a request, and the API server may have applied it the first time.
    const lost = await sluice.metric('rest_client_requests_total', { code: '<error>' });
    const why = `the controller logged ${JSON.stringify(warnings.slice(0, 20), null, 2)}, ${lost} requests had no response`;
    const changed = JSON.stringify(statuses.take(), null, 2);
    expect(writes['APPLY activations/status'], `${why}, and these statuses changed: ${changed}`).toBe(activations);
    // The salt must be stored before a signing secret is derived from it.
    expect(writes['APPLY subscriptions/status'], why).toBe(2 * subscriptions);
    await expectBounded('with everything applied');
  });

  it('opens or closes an activation with one command for each part and one status', { timeout: MOST_MS }, async () => {
    const set = (revoked: boolean) => async (attempt: number) => {
      const name = activationName(attempt);
      await observer.apply(manifestOf(findWanted(name), { revoked }));
      await observer.until(['Activation', name, PRODUCER, 'Effective', revoked ? 'False/Revoked' : 'True/Routing']);
    };
    const writes = { 'APPLY activations': 1, 'APPLY activations/status': 1 };
    const [closing, opening] = await costsOf(costOf, isCheap, [
      { make: set(true), commands: SUBSCRIPTIONS_EACH + 2, writes },
      { make: set(false), commands: SUBSCRIPTIONS_EACH + 1, writes },
    ]);
    expectCheap('closing an activation', closing);
    expectCheap('opening an activation', opening);
    // The controller writes to the part of each stream that the integration subscribes to.
    const gates = Array.from({ length: SUBSCRIPTIONS_EACH }, () => 'gate');
    expect(closing.commands).toEqual(['hexists', ...gates, 'act']);
    expect(closing.writes).toEqual(writes);
    expect(opening.commands).toEqual(['act', ...gates]);
    expect(opening.writes).toEqual(writes);
  });

  it('applies a block with one status for each subscription that it blocks', { timeout: MOST_MS }, async () => {
    const covered = (attempt: number) => attempt * SUBSCRIPTIONS_EACH + attempt;
    const live = (attempt: number, is: string) =>
      observer.until(['Subscription', subscriptionName(covered(attempt)), PARTNER, 'Live', is]);
    const close = async (attempt: number) => {
      const { integration, stream } = pairOf(covered(attempt));
      const target = { kind: 'CatalogStream', name: stream };
      await observer.apply(block(PRODUCER, `block-${attempt}`, { integration, target }));
      await observer.until(['Block', `block-${attempt}`, PRODUCER, 'Enforced', 'True/Enforced']);
      await live(attempt, 'False/Blocked');
    };
    const lift = async (attempt: number) => {
      await observer.remove('Block', `block-${attempt}`, PRODUCER);
      await live(attempt, 'True/Live');
    };
    const blocked = { 'APPLY blocks': 1, 'APPLY blocks/status': 1, 'APPLY subscriptions/status': 1 };
    const lifted = { 'DELETE blocks': 1, 'APPLY subscriptions/status': 1 };
    const [blocking, lifting] = await costsOf(costOf, isCheap, [
      { make: close, commands: 2, writes: blocked },
      { make: lift, commands: 2, writes: lifted },
    ]);
    expectCheap('creating a block', blocking);
    expectCheap('deleting a block', lifting);
    expect(blocking.commands).toEqual(['gate', 'patch']);
    expect(blocking.writes).toEqual(blocked);
    // The gate of the part, and the record.
    expect(lifting.commands).toEqual(['gate', 'patch']);
    expect(lifting.writes).toEqual(lifted);
  });

  it('deletes and creates a subscription without reading the whole tenant', { timeout: MOST_MS }, async () => {
    const name = (attempt: number) => subscriptionName(100 + attempt * (SUBSCRIPTIONS_EACH + 1));
    const remove = async (attempt: number) => {
      await observer.remove('Subscription', name(attempt), PARTNER);
      const isGone = async () => !(await observer.exists('Subscription', name(attempt), PARTNER));
      await eventually('the subscription is deleted', isGone, { withinMs: 30_000 });
    };
    const bring = async (attempt: number) => {
      await observer.apply(manifestOf(findWanted(name(attempt))));
      await observer.until(['Subscription', name(attempt), PARTNER, 'Live', 'True/Live']);
    };
    const gone = { 'DELETE subscriptions': 1, 'PATCH subscriptions': 1 };
    // The new subscription has a new salt, and therefore a new signing secret.
    const come = {
      'APPLY subscriptions': 1,
      'PATCH subscriptions': 1,
      'APPLY subscriptions/status': 2,
      'APPLY secrets': 1,
    };
    const [going, coming] = await costsOf(costOf, isCheap, [
      { make: remove, commands: 29, without: 'hashes', writes: gone },
      { make: bring, commands: 19, without: 'hashes', writes: come },
    ]);
    expectCheap('deleting a subscription', going);
    expectCheap('creating a subscription', coming);
    // The controller does not read the tenant again.
    expect(going.commands).not.toContain('hashes');
    expect(going.commands.length).toBeLessThan(30);
    expect(coming.commands).not.toContain('hashes');
    expect(coming.commands.length).toBeLessThan(20);
    expect(going.writes).toEqual(gone);
    expect(coming.writes).toEqual(come);
  });

  it('finds everything applied and writes nothing when a new leader starts', { timeout: MOST_MS }, async () => {
    await settled();
    const before = await readApiWrites(installed.cluster);
    expect((await sluice.stop()).signal).toBeNull();
    const beganMs = Date.now();
    await sluice.restart();
    const coldMs = await ledAfterMs(beganMs);
    await settled();
    const allMs = Date.now() - beganMs;
    expect(writesBetween(before, await readApiWrites(installed.cluster))).toEqual({});
    await expectBounded('after a cold start');

    const listingMs = performance.now();
    for (const { kind } of Object.values(KINDS)) await client.list(resourceOf(kind), () => undefined);
    const listedMs = performance.now() - listingMs;
    const ratio = (ms: number) => (ms / listedMs).toFixed(1);
    console.log(
      `cold start: leads with all routes applied after ${ratio(coldMs)} times the time for listing all objects ` +
        `(${seconds(listedMs)} s), and has reconciled all objects after ${ratio(allMs)} times`,
    );
  });
});
