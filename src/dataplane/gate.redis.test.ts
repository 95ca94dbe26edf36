import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { objectOf } from '../../test/support/controller/test-context.ts';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { connectRedis, type RedisClient, type Reply } from '../redis/client.ts';
import { createLogger } from '../telemetry/log.ts';
import { type Actor, type Choose, everySchedule, type Fate, interleave } from './testing/interleaving.ts';
import type { Witness } from './testing/process-client.ts';
import { createEar, createProcesses, type Processes } from './testing/processes.ts';

const ROUTER_WRITES = ['route', 'lower', 'next'];
const ROUTER_STEPS = ['lookup', 'catchup', ...ROUTER_WRITES];
const DISPATCHER_WRITES = ['exchange', 'settle'];
const DISPATCHER_STEPS = ['pick', ...DISPATCHER_WRITES];
/** Beyond every lease. */
const LATER_MS = 40_000;
/** The first retry is due then, with its jitter. */
const RETRY_MS = 5_000;

/** A change of the objects that closes the gate, and the one that opens it again. */
interface Closing {
  /** Of which group keys. */
  readonly covers: (groupKey: string) => boolean;
  /** What comes meanwhile is kept for later; otherwise it is for nobody, if it is looked at before the gate is open. */
  readonly keeps: boolean;
  readonly prepare?: (p: Processes) => Promise<void>;
  readonly close: (p: Processes, failures: number) => Promise<void>;
  /** None: it is for good. */
  readonly open?: (p: Processes, failures: number) => Promise<void>;
}

const named = ({ name }: Processes, object: string, spec: object) =>
  objectOf(object, spec as never, { namespace: name });
const sync = (p: Processes) => p.controller.tenants.sync(p.name);
const blockOf = (p: Processes, target: object) =>
  named(p, 'block', { integration: 'ada', target, onUnblock: 'Continue' });
const suspend = (p: Processes, suspended: boolean) => {
  const object = p.controller.caches.Subscription.store.byIndex('producer', p.name)[0] as never as {
    spec: object;
    metadata: { name: string };
  };
  p.controller.save('Subscription', { ...object, spec: { ...object.spec, suspended } } as never);
};
const revoke = (p: Processes, revoked: boolean) =>
  p.controller.save('Activation', p.controller.activation('k', revoked ? { revoked } : {}));
const all = () => true;

const CLOSINGS: Readonly<Record<string, Closing>> = {
  deactivation: {
    covers: groupKey => groupKey === 'k',
    keeps: false,
    close: async (p, failures) => {
      revoke(p, true);
      await p.controller.reconcile('k', failures);
    },
    open: async (p, failures) => {
      revoke(p, false);
      await p.controller.reconcile('k', failures);
    },
  },
  'a block': {
    covers: all,
    keeps: true,
    close: async p => {
      p.controller.save('Block', blockOf(p, { kind: 'CatalogStream', name: 'orders' }));
      await sync(p);
    },
    open: async p => {
      p.controller.save('Block', blockOf(p, { kind: 'CatalogStream', name: 'other' }));
      await sync(p);
    },
  },
  'a stream that is added to a blocked package': {
    covers: all,
    keeps: true,
    prepare: async p => {
      p.controller.save('Package', named(p, 'bundle', { streams: [] }));
      p.controller.save('Block', blockOf(p, { kind: 'Package', name: 'bundle' }));
      await sync(p);
    },
    close: async p => {
      p.controller.save('Package', named(p, 'bundle', { streams: ['orders'] }));
      await sync(p);
    },
    open: async p => {
      p.controller.save('Package', named(p, 'bundle', { streams: [] }));
      await sync(p);
    },
  },
  'a suspension': {
    covers: all,
    keeps: true,
    close: async p => {
      suspend(p, true);
      await sync(p);
    },
    open: async p => {
      suspend(p, false);
      await sync(p);
    },
  },
  'a revoked integration': {
    covers: all,
    keeps: false,
    close: async p => {
      const { spec, ...rest } = p.controller.objects.integration as never as { spec: object };
      p.controller.save('Integration', { ...rest, spec: { ...spec, revoked: true } } as never);
      await sync(p);
    },
  },
};

/** How often something happened that these tests are about. */
interface Seen {
  /** An inbox refused what the router had found open. */
  refused: number;
  /** A dispatcher asked for what it may not have. */
  held: number;
}

let client: RedisClient | undefined;
beforeAll(async () => {
  client = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => client?.close());
// No sweep comes in between, whatever the time a schedule takes.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

interface Case {
  readonly closing: string;
  readonly unordered?: boolean;
  readonly stepped: 'router' | 'dispatcher' | 'dispatcher and its ear';
  /** Of the controller; of the others, that they may die. */
  readonly faults?: readonly Fate[];
}

/** Closes the gate, answers, and opens it again; an event comes after each answer, unless it is to be quiet. */
function controllerOf(
  p: Processes,
  { close, open }: Closing,
  quiet: boolean,
  state: { closed: boolean },
  faults: readonly Fate[],
): Actor {
  async function insist(change: (p: Processes, failures: number) => Promise<void>): Promise<void> {
    for (let failures = 0; ; failures++) {
      try {
        return await change(p, failures);
      } catch (error) {
        if (failures > 0) throw error;
      }
    }
  }
  return {
    name: 'controller',
    faults,
    run: async step => {
      p.controller.turn.step = step;
      await insist(close);
      state.closed = true;
      await step('is answered', async () => void (quiet || (await p.accept('k4'))));
      if (open === undefined) return;
      p.controller.turn.step = (label, call) =>
        step(label, () => {
          state.closed = false;
          return call();
        });
      await insist(open);
      await step('is answered', async () => void (quiet || (await p.accept('k5'))));
    },
  };
}

function witnessOf(closing: Closing, state: { closed: boolean }, wrong: string[], seen: Seen): Witness {
  return (name, _keys, args, reply) => {
    if (name === 'route') {
      const [word, flags] = reply as Reply[];
      if (word !== 'OK') seen.refused++;
      for (let at = 4; word === 'OK' && at < args.length; at += 4) {
        const [flag, groupKey] = [(flags as string)[(at - 4) / 4], args[at + 2] as string];
        if (flag === 'a') seen.refused++;
        if (flag === 'r' && state.closed && closing.covers(groupKey)) wrong.push(`${groupKey} was routed`);
      }
    }
    if (name === 'exchange') {
      const [, , word, , , claims] = reply as string[];
      if (word === '') return;
      if (state.closed || word !== 'OK') seen.held++;
      const lanes = claims === '' ? [] : (claims as string).split('\n').filter((_, i) => i % 4 === 0);
      for (const lane of lanes) {
        if (state.closed && closing.covers(lane.slice(0, 1))) wrong.push(`${lane} was claimed`);
      }
    }
  };
}

/** What was routed came out: in order, once unless somebody died, no retry early. */
async function check(p: Processes, { closing, unordered = false }: Case, faulty: boolean): Promise<void> {
  const { keeps, open } = CLOSINGS[closing] as Closing;
  if (faulty) {
    // The next leader, first of all: it finds what the last one left half done.
    const next = await p.createController();
    await next.tenants.sync(p.name);
    for (const groupKey of ['k', 'o']) await next.reconcile(groupKey);
    await open?.({ ...p, controller: next }, 0);
    p.clock.ms += LATER_MS;
    await p.settle(p.router(), p.dispatcher());
    // Whoever died had not failed before.
    p.clock.ms += RETRY_MS + 1_000;
  } else if (open !== undefined) {
    // Without anything else happening, no time and no event: all but what waits for its retry.
    expect(await p.unrouted()).toBe(0);
    expect((await p.open()).filter(groupKey => unordered || groupKey !== 'k')).toEqual(unordered ? ['k'] : []);
    p.clock.ms += RETRY_MS + 1_000;
  }
  await p.settle(p.router(), p.dispatcher());
  const routed = await p.routed();
  const kept = p.accepted.filter(body => keeps || !['k3', 'k4'].includes(body));
  const sure = open === undefined ? ['k1', 'k2', 'o1'] : kept;
  expect(routed).toEqual(p.accepted.filter(body => routed.includes(body)));
  expect(sure.filter(body => !routed.includes(body))).toEqual([]);
  const firsts = [...new Set(p.sent.map(({ body }) => body))];
  if (open !== undefined) {
    expect(await p.open()).toEqual([]);
    expect(firsts.toSorted()).toEqual(routed.toSorted());
  }
  const retries = p.sent.filter(({ body }) => body === 'k1').map(({ atMs }) => atMs);
  if (!faulty) expect(p.sent).toHaveLength(firsts.length + (retries.length > 1 ? 1 : 0));
  if (retries.length > 1) expect(retries[1]).toBeGreaterThanOrEqual((retries[0] as number) + RETRY_MS);
  if (unordered) return;
  for (const groupKey of ['k', 'o']) {
    const bodies = p.sent.map(({ body }) => body).filter(body => body.startsWith(groupKey));
    expect(bodies).toEqual(bodies.toSorted());
  }
}

async function run(each: Case, choose: Choose, seen: Seen): Promise<void> {
  const { stepped, unordered = false, faults = [] } = each;
  const closing = CLOSINGS[each.closing] as Closing;
  const p = await createProcesses(client as RedisClient, { unordered });
  await closing.prepare?.(p);
  p.failing.add('k1');
  await p.accept('k1', 'k2', 'o1');
  await p.settle(p.router());
  // What lies in the inbox must come out without an event that wakes anybody.
  const quiet = stepped !== 'router';
  if (!quiet) await p.accept('k3', 'o2');
  const state = { closed: false };
  const wrong: string[] = [];
  p.witnesses.push(witnessOf(closing, state, wrong, seen));
  const dies: readonly Fate[] = faults.length > 0 ? ['crash'] : [];
  const ear =
    stepped === 'dispatcher and its ear' ? createEar('ear', faults.length > 0 ? ['not done'] : []) : undefined;
  const router = stepped === 'router' ? { steps: faults.length > 0 ? ROUTER_WRITES : ROUTER_STEPS, faults: dies } : {};
  const dispatcher =
    stepped === 'router'
      ? {}
      : {
          steps: faults.length > 0 ? DISPATCHER_WRITES : DISPATCHER_STEPS,
          faults: dies,
          ...(ear === undefined ? {} : { ear }),
        };
  let happened = 0;
  const trace = await interleave(
    [
      ...(ear === undefined ? [] : [ear]),
      controllerOf(p, closing, quiet, state, faults),
      p.router(router),
      p.dispatcher('dispatcher', dispatcher),
    ],
    (options, last) => {
      const choice = choose(options, last);
      if (choice.fate !== 'done') happened++;
      return choice;
    },
  );
  try {
    expect(wrong).toEqual([]);
    await check(p, each, happened > 0);
  } catch (error) {
    throw new Error(`after:\n  ${trace.join('\n  ')}\n${String(error)}`, { cause: error });
  }
}

const TWICE = { preemptions: 2, faults: 0 };
const THRICE = { preemptions: 3, faults: 0 };
const ONCE = { preemptions: 1, faults: 1 };

/**
 * The gate, call by call, between the real roles: once a closing was answered nothing that it covers is routed or
 * claimed, and when it is opened again nothing is lost, early or out of order, without anybody having to look twice.
 */
describe.each(Object.keys(CLOSINGS))('%s', closing => {
  const cases: (Case & { readonly bounds: typeof TWICE })[] = [{ closing, stepped: 'router', bounds: TWICE }];
  // To a dispatcher these are the same as a block.
  if (!['a suspension', 'a stream that is added to a blocked package'].includes(closing)) {
    cases.push({ closing, stepped: 'dispatcher', bounds: THRICE });
  }
  if (closing === 'deactivation') {
    cases.push({ closing, stepped: 'dispatcher', unordered: true, bounds: THRICE });
    cases.push({ closing, stepped: 'router', faults: ['crash', 'not done'], bounds: ONCE });
  }
  if (closing === 'a block')
    cases.push({ closing, stepped: 'dispatcher and its ear', faults: ['crash'], bounds: ONCE });
  test.each(cases)('against the $stepped, $bounds', { timeout: 400_000 }, async ({ bounds, ...each }) => {
    const seen = { refused: 0, held: 0 };
    const runs = await everySchedule(bounds, choose => run(each, choose, seen));
    expect(runs).toBeGreaterThan(50);
    expect(seen.refused + seen.held).toBeGreaterThan(10);
  });
});
