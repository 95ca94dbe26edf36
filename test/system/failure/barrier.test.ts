import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRandom } from '../../support/random.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type Clerk, openClerk, type Version } from '../rest/support/clerk.ts';
import { faultsOf } from '../support/audit.ts';
import {
  type Arrival,
  type Change,
  type Decision,
  type History,
  judgeBarriers,
  type Stall,
} from '../support/barrier-judge.ts';
import {
  ALWAYS,
  type BarrierWorld,
  endpointOf,
  openBarrierWorld,
  type Partner,
  PRODUCER,
  packageOf,
  QUEUES,
} from '../support/barrier-world.ts';
import { eventually, spread } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { type LoadedEvent, startLoad } from '../support/steady-load.ts';
import { activation, block } from '../support/world.ts';

/** The number of changes. `CHANGES=20000 SEED=7` runs more of them, and `make test-scale` uses 4,000. */
const CHANGES = Number(process.env.CHANGES || 1_000);
const SEED = Number(process.env.SEED || 1);
const PER_SECOND = 500;
/** A claim may be sent for 1 s. On a busy machine, it takes longer to arrive. */
const ALLOWED_MS = 1_700;
const STALL_MS = 100;

/** Two clients for each stream of bob and cy would change the same lever, so each stream has one client. */
const KEYS: Readonly<Record<Partner, readonly string[]>> = {
  ada: ['red', 'green', 'blue', 'pink'],
  bob: [],
  cy: ['cyan', 'teal', 'navy', 'lime'],
};
const LANES = [
  ...ALWAYS,
  ...[...KEYS.ada, ...KEYS.cy].flatMap((groupKey, n) =>
    [n, n + 1, n + 2].map(at => ({ groupKey, queue: QUEUES[at % QUEUES.length] as string })),
  ),
];

let installed: Installation;
let controller: Sluice;
let world: BarrierWorld;
let clerk: Clerk;

beforeAll(async () => {
  installed = await install();
  controller = await installed.start({ role: 'controller' });
  const [ingress] = await Promise.all((['ingress', 'dispatcher'] as const).map(role => installed.start({ role })));
  world = await openBarrierWorld(installed, ingress as Sluice, KEYS);
  clerk = await openClerk(installed.cluster.kubeconfig, ['Activation', 'Block', 'Subscription']);
});

afterAll(async () => {
  await clerk?.close();
  await world?.close();
  await installed?.stop();
});

interface Lever {
  readonly name: string;
  readonly partner: Partner;
  /** The events behind the lever. */
  readonly queues: readonly string[];
  readonly groupKey?: string;
  /** Each function resolves to the time of the response, by `performance.now()`. */
  readonly close: () => Promise<number>;
  readonly open: () => Promise<number>;
  readonly beforeOpen?: () => Promise<unknown>;
}

function leverOfKey(partner: Partner, groupKey: string): Lever {
  const turn = async (revoked: boolean, is: string) =>
    clerk.until(await clerk.apply(activation(PRODUCER, partner, groupKey, { revoked })), 'Effective', is);
  return {
    name: `${partner}/${groupKey}`,
    partner,
    queues: QUEUES,
    groupKey,
    close: () => turn(true, 'False/Revoked'),
    open: () => turn(false, 'True/Routing'),
  };
}

function leverOfQueue(partner: Partner, queue: string, random: () => number): Lever {
  const name = `no-${queue}-for-${partner}`;
  const live: Version = { kind: 'Subscription', namespace: partner, name: `${PRODUCER}-${queue}` };
  return {
    name: `${partner}/${queue}`,
    partner,
    queues: [queue],
    close: async () => {
      const target =
        random() < 0.5 ? { kind: 'CatalogStream', name: queue } : { kind: 'Package', name: packageOf(queue) };
      const made = await clerk.apply(block(PRODUCER, name, { integration: partner, target }));
      return clerk.until(made, 'Enforced', 'True/Enforced');
    },
    // Otherwise, the response to the opening could not be distinguished from an earlier response.
    beforeOpen: () => clerk.until(live, 'Live', 'False/Blocked'),
    open: async () => {
      await clerk.remove('Block', PRODUCER, name);
      return clerk.until(live, 'Live', 'True/Live');
    },
  };
}

/** Moves the lever back and forth until there are no more changes. */
async function flip(lever: Lever, random: () => number, take: () => boolean): Promise<Change[]> {
  const changes: Change[] = [];
  const { partner, queues, groupKey } = lever;
  while (take()) {
    await delay(50 + random() * 250);
    const closedMs = performance.now();
    const closing = { to: 'closed', askedMs: closedMs, answeredMs: await lever.close() } as const;
    const marks = await world.newest(partner, queues);
    // Some changes wait for longer than the attempts of earlier claims may take.
    await delay(random() < 0.1 ? ALLOWED_MS + 300 + random() * 1_000 : 30 + random() * 200);
    await lever.beforeOpen?.();
    const routed = (await world.routedSince(partner, marks)).filter(
      each => groupKey === undefined || each.groupKey === groupKey,
    );
    changes.push({ ...closing, routed: routed.map(({ id }) => id) });
    const askedMs = performance.now();
    changes.push({ to: 'open', askedMs, answeredMs: await lever.open() });
  }
  return changes;
}

/** Returns the attempts behind a lever. */
function arrivalsAt({ partner, queues, groupKey }: Lever, sentMs: ReadonlyMap<string, number>): Arrival[] {
  const endpoints = new Set(queues.map(queue => endpointOf(partner, queue)));
  return world.receiver.attempts
    .filter(each => endpoints.has(each.subscription) && (groupKey === undefined || each.groupKey === groupKey))
    .map(({ id, atMs }) => ({ id, atMs, sentMs: sentMs.get(id) }));
}

/** The events of ada only depend on her activations. */
async function decisionsOf(events: readonly LoadedEvent[]): Promise<Map<string, Decision[]>> {
  const none = new Map(QUEUES.map(queue => [queue, '0-0']));
  const routed = new Set((await world.routedSince('ada', none)).map(({ id, groupKey }) => `${groupKey} ${id}`));
  const refs = new Map(await Promise.all(QUEUES.map(async queue => [queue, await world.refs(queue)] as const)));
  const decisions = events.flatMap(({ queue, groupKey, sample: { id }, publication }) => {
    const { sentMs, tries, answeredMs } = publication;
    // If an event had to be resent, ingress may have accepted an earlier request.
    if (!KEYS.ada.includes(groupKey) || tries > 1) return [];
    const ref = refs.get(queue)?.get(id) ?? '';
    return [{ lever: `ada/${groupKey}`, id, sentMs, answeredMs, routed: routed.has(`${groupKey} ${ref}`) }];
  });
  return Map.groupBy(decisions, ({ lever }) => lever);
}

/** Records when this process does not run for a while. */
function recordStalls(): { readonly stalls: readonly Stall[]; readonly stop: () => void } {
  const stalls: Stall[] = [];
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - lastMs > STALL_MS) stalls.push({ fromMs: lastMs, toMs: nowMs });
    lastMs = nowMs;
  }, 20);
  return { stalls, stop: () => clearInterval(timer) };
}

const answers = (levers: readonly (readonly [Lever, Change[]])[], ofKeys: boolean, to: Change['to']) =>
  levers
    .filter(([{ groupKey }]) => (groupKey !== undefined) === ofKeys)
    .flatMap(([, changes]) => changes.filter(change => change.to === to))
    .map(({ askedMs, answeredMs }) => answeredMs - askedMs);

it(`changes are in effect when they return: ${CHANGES} changes by 16 clients, ${PER_SECOND} events per second`, {
  timeout: 300_000 + CHANGES * 500,
}, async () => {
  const { receiver } = world;
  // A few events fail three times, which delays the following events.
  receiver.behave(({ id, earlier }) => {
    const n = Number(id.slice(id.lastIndexOf('.') + 1));
    if (n % 120 === 60 && earlier < 3) return 503;
    return n % 20 === 10 ? { status: 204, afterMs: 40 } : 204;
  });
  const levers = [
    ...(['ada', 'cy'] as const).flatMap(partner => KEYS[partner].map(key => leverOfKey(partner, key))),
    ...(['bob', 'cy'] as const).flatMap((partner, n) =>
      QUEUES.map((queue, at) => leverOfQueue(partner, queue, createRandom(SEED * 100 + n * 10 + at))),
    ),
  ];
  const { stalls, stop } = recordStalls();
  const load = startLoad(world.publisherOf, LANES, PER_SECOND);
  const startedMs = performance.now();
  let left = CHANGES;
  const take = () => {
    left -= 2;
    return left >= 0;
  };
  const turned = await Promise.all(
    levers.map(async (lever, n) => [lever, await flip(lever, createRandom(SEED + n), take)] as const),
  ).catch(async (cause: unknown) => {
    const lines = (await controller.logLines()).slice(-20).map(line => JSON.stringify(line));
    throw new Error(`a change was not answered; the last lines of the controller: ${lines.join('\n')}`, { cause });
  });
  const tookMs = performance.now() - startedMs;
  const rate = await load.stop();
  receiver.behave(() => 204);
  const changes = turned.flatMap(([, each]) => each);

  // All levers are open again, so the held events are delivered in order.
  const steady = new Set(ALWAYS.map(({ groupKey }) => groupKey));
  const expected = Map.groupBy(
    load.events.filter(({ groupKey }) => steady.has(groupKey)),
    ({ queue }) => queue,
  );
  const attempts = receiver.attempts;
  for (const partner of ['bob', 'cy'] as const) {
    for (const [queue, events] of expected) {
      const endpoint = endpointOf(partner, queue);
      const samples = events.map(({ sample }) => sample);
      const everything = async () => samples.every(({ id }) => receiver.delivered(endpoint).has(id));
      await eventually(`all events are delivered to ${endpoint}`, everything);
      const seen = { ...receiver, attempts: attempts.filter(({ groupKey }) => steady.has(groupKey)) };
      expect(faultsOf(seen, endpoint, samples)).toEqual([]);
    }
  }

  stop();
  const sentMs = new Map(
    load.events.flatMap(({ sample, publication }) =>
      publication.tries === 1 ? [[sample.id, publication.sentMs] as const] : [],
    ),
  );
  const drainedMs = performance.now() - startedMs - tookMs;
  const decisions = await decisionsOf(load.events);
  const histories: History[] = turned.map(([lever, each]) => ({
    lever: lever.name,
    changes: each,
    decisions: decisions.get(lever.name) ?? [],
    arrivals: arrivalsAt(lever, sentMs),
  }));
  const { violations, judged } = judgeBarriers(histories, ALLOWED_MS, stalls);
  console.log(
    [
      `${changes.length} changes in ${(tookMs / 1_000).toFixed(1)} s, ${Math.round(rate)} events/s, ${attempts.length} attempts, the last ${(drainedMs / 1_000).toFixed(1)} s later`,
      `activation: closing ${spread(answers(turned, true, 'closed'))}; opening ${spread(answers(turned, true, 'open'))}`,
      `Block: closing ${spread(answers(turned, false, 'closed'))}; opening ${spread(answers(turned, false, 'open'))}`,
      `all: ${spread(changes.map(({ askedMs, answeredMs }) => answeredMs - askedMs))}`,
      `judged: ${JSON.stringify(judged)}`,
    ].join('\n'),
  );
  expect(violations).toEqual([]);
  expect(changes).toHaveLength(CHANGES);
  expect(judged.whileOpen).toBeGreaterThan(CHANGES / 4);
  expect(judged.whileClosed).toBeGreaterThan(CHANGES / 20);
  expect(judged.longClosings).toBeGreaterThan(CHANGES / 40);
  const worried = (await controller.logLines()).filter(({ level }) => level === 'error');
  expect(worried).toEqual([]);
});
