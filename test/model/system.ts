import { randomUUID } from 'node:crypto';
import { generationOf } from '../../src/core/ids.ts';
import { refOfStreamId } from '../../src/core/refs.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { createHintIndex } from '../../src/redis/hints.ts';
import { createInboxOperations } from '../../src/redis/inbox-operations.ts';
import type { Completion } from '../../src/redis/inbox-store.ts';
import { queueKeys } from '../../src/redis/keys.ts';
import { type Controller, createController, type PairName, pairsOf } from './controller.ts';
import { checkClaim, checkEvent, noteEnd, noteFinish, ownerOf } from './deliveries.ts';
import { createDispatcher, type Dispatcher, type Flight } from './dispatcher.ts';
import type { Routing } from './inbox-comparison.ts';
import { createObjects } from './objects.ts';
import { createProcess, type Death, type Process } from './process.ts';
import { createPublisher, refsOf } from './publisher.ts';
import { changedKeys, changesOf, dropSlot, dumpRedis, type RedisDump } from './redis-dump.ts';
import { createRouter, type Router } from './router.ts';
import { createModelTenant, type ModelTenant, NAMES } from './tenant.ts';
import { hold } from './violation.ts';

const START_MS = 1_800_000_000_000;
export const TENANTS = ['acme', 'bolt'] as const;
export type TenantName = (typeof TENANTS)[number];

interface Running<T> {
  readonly process: Process;
  readonly work: T;
}

/** One run: two tenants with equal names of everything on one Redis, and the processes that serve them. */
export type System = Awaited<ReturnType<typeof createSystem>>;

export async function createSystem(redis: RedisClient) {
  await redis.callAll('FLUSHALL');
  const clock = { ms: START_MS };
  const nowMs = () => clock.ms;
  const objects = createObjects(nowMs);
  objects.addAccount('main');
  for (const name of TENANTS) objects.addWorkspace(name);
  const tenants = new Map(TENANTS.map(name => [name as string, createModelTenant(objects, name)]));
  const everyTenant = [...tenants.values()];
  const members = everyTenant.flatMap(({ id, names }) => names.streams.map(stream => `${id}:${stream}`));
  const story: string[] = [];
  const lostFlights: Flight[] = [];
  const routers: (Running<Router> | undefined)[] = [];
  let controller: Running<Controller> | undefined;
  let dispatcher: Running<Dispatcher> | undefined;
  let routerDied = false;
  let lostSlots = false;
  const operations = createInboxOperations({ redis, nowMs, lower: createHintIndex(redis, 'd').lower });

  function tenantOf(name: string): ModelTenant {
    return tenants.get(name) as ModelTenant;
  }

  function startDispatcher(): Running<Dispatcher> {
    const process = createProcess(redis);
    return { process, work: createDispatcher(process.redis, randomUUID().slice(0, 8), nowMs) };
  }

  function startRouter(): Running<Router> {
    const process = createProcess(redis);
    return { process, work: createRouter(process.redis, randomUUID().slice(0, 8), nowMs) };
  }

  function say(text: string): void {
    story[story.length - 1] += ` ${text}`;
  }

  /** Every event that lies in a queue is one that was published there (invariant 14). */
  function checkQueues(dump: RedisDump): void {
    for (const tenant of everyTenant) {
      for (const [stream, { uid }] of tenant.defined().streams) {
        const entries = dump.streams.get(queueKeys(tenant.id, stream, generationOf(uid)).events) ?? [];
        const known = refsOf(tenant, uid);
        for (const [id] of entries) {
          hold(14, known.has(refOfStreamId(id)), () => `${tenant.name}'s ${stream} has ${id}, which nobody published`);
        }
      }
    }
  }

  async function check(routing: ReadonlyMap<string, Routing> = new Map()): Promise<RedisDump> {
    const dump = await dumpRedis(redis);
    checkQueues(dump);
    for (const tenant of everyTenant) {
      const ofTenant = new Map<string, Routing>();
      for (const stream of tenant.names.streams) {
        const how = routing.get(`${tenant.id}:${stream}`);
        if (how !== undefined) ofTenant.set(stream, how);
      }
      tenant.check(dump, ofTenant, clock.ms);
    }
    return dump;
  }

  /** A controller that leads, and has made good what others left half done; undefined when it died of that. */
  async function leader(death?: Death): Promise<Controller | undefined> {
    if (controller !== undefined) return controller.work;
    const process = createProcess(redis);
    const work = await createController(process.redis, objects, nowMs);
    for (const tenant of everyTenant) tenant.begin();
    if (!(await process.live(() => work.lead(TENANTS), death))) return undefined;
    for (const tenant of everyTenant) tenant.commit();
    controller = { process, work };
    return work;
  }

  /** Brings the tenant's objects into force; a controller that dies of it is followed by another one, later. */
  async function settle(name: string, pairs: readonly PairName[], death: Death | undefined, onlyPairs: boolean) {
    const tenant = tenantOf(name);
    const leading = controller !== undefined;
    const work = await leader(leading ? undefined : death);
    if (work === undefined) return say('— the new controller died');
    if (!leading) return undefined;
    tenant.begin();
    const done = await (controller as Running<Controller>).process.live(async () => {
      if (onlyPairs) for (const pair of pairs) await work.settlePair(name, pair);
      else await work.settle(name, pairs);
    }, death);
    if (done) tenant.commit();
    else {
      controller = undefined;
      say('— the controller died');
    }
    return undefined;
  }

  const outcomeOf = (flight: Flight, wanted: Completion['outcome']): Completion['outcome'] => {
    if (flight.event === undefined) return 'expired';
    return wanted === 'failed' && flight.claim.attempts >= 2 ? 'dead' : wanted;
  };

  async function end(flight: Flight, wanted: Completion['outcome']): Promise<void> {
    const { process, work } = dispatcher as Running<Dispatcher>;
    const outcome = outcomeOf(flight, wanted);
    const dueMs = clock.ms + 5_000 * (flight.claim.attempts + 1);
    await process.live(async () => {
      const answer = await work.end(flight, outcome, dueMs);
      noteEnd(everyTenant, flight, outcome, answer, dueMs, clock.ms);
    }, undefined);
  }

  const system = {
    redis,
    clock,
    objects,
    story,
    say,
    tenantOf,
    tenants: everyTenant,

    /** One line of the story, what it does, and every check. */
    async step(text: string, run: () => Promise<ReadonlyMap<string, Routing> | undefined | void>): Promise<void> {
      story.push(text);
      await check((await run()) ?? undefined);
    },

    /** Something of the routes changed; `pairs` follow it. */
    change: (name: string, death: Death | undefined, pairs: readonly PairName[] = []) =>
      settle(name, pairs, death, false),
    /** An activation changed, and nothing else. */
    changePair: (name: string, pair: PairName, death: Death | undefined) => settle(name, [pair], death, true),
    takeOver: (): void => {
      controller = undefined;
    },
    lead: async (death?: Death): Promise<void> => {
      if ((await leader(death)) === undefined) say('— it died');
    },
    isLed: () => controller !== undefined,

    /** Nothing changed: nothing is written (invariant 9). */
    async resync(name: string, pairs: readonly PairName[]): Promise<void> {
      // What waited for its turn, as a stream that has drained by now, comes first.
      await settle(name, pairs, undefined, false);
      await settle(name, pairs, undefined, false);
      const dump = await dumpRedis(redis);
      const before = await changesOf(redis);
      await (controller as Running<Controller>).work.settle(name, pairs);
      const written = (await changesOf(redis)) - before;
      if (written === 0) return;
      const where = changedKeys(dump, await dumpRedis(redis));
      hold(9, false, () => `${written} writes to Redis (${where.join(', ')}), though nothing of ${name} had changed`);
    },

    publish: createPublisher({ redis, nowMs, tenantOf, say }),

    async route(which: number, death?: Death): Promise<ReadonlyMap<string, Routing>> {
      const { process, work } = (routers[which] ??= startRouter());
      const said = new Map<string, Routing>();
      if (!(await process.live(() => work.work(members, said), death))) {
        routers[which] = undefined;
        routerDied = true;
        say('— the router died');
      }
      const streams = [...said].map(([member, how]) => {
        const tenant = everyTenant.find(each => member.startsWith(`${each.id}:`));
        return `${tenant?.name}'s ${member.split(':')[1]} ${how}`;
      });
      say(`: ${streams.join(', ') || 'nothing was due'}`);
      return said;
    },

    async claim(room: number, death?: Death): Promise<void> {
      const { process, work } = (dispatcher ??= startDispatcher());
      const claimed: string[] = [];
      const alive = await process.live(
        () =>
          work.claim(members, room, (member, claim) => {
            const { tenant, receiver } = ownerOf(everyTenant, member);
            checkClaim(everyTenant, [...lostFlights, ...work.flights], member, claim, clock.ms);
            claimed.push(`${receiver.open.get(claim.ref)?.event.name} for ${tenant.name}'s ${receiver.name}`);
          }),
        death,
      );
      say(`: ${claimed.join(', ') || 'nothing'}`);
      for (const flight of work.flights) checkEvent(everyTenant, flight);
      if (alive) return;
      system.killDispatcher();
      say('— the dispatcher died');
    },
    /** Redis loses one slot, and the controller, which is told of it, makes anew what can be made of the objects. */
    async loseSlot(name: string, tag: string, forget: (tenant: ModelTenant) => void): Promise<void> {
      const work = await leader();
      if (work === undefined) return;
      const tenant = tenantOf(name);
      await dropSlot(redis, tag);
      clock.ms += 1_000;
      lostSlots = true;
      forget(tenant);
      work.forget(name);
      tenant.begin();
      const pairs = NAMES.integrations.flatMap(integration => pairsOf(objects, name, integration));
      await work.settle(name, pairs);
      tenant.commit();
    },
    /** What a partner does to an event of its inbox that is, or was, open. */
    async finish(name: string, which: number, outcome: 'skipped' | 'delivered'): Promise<void> {
      const tenant = tenantOf(name);
      if (!tenant.isCertain()) return say(': not while a controller is at work');
      const known = [...tenant.receivers.values()].filter(({ ended, leaving }) => !ended && !leaving);
      const all = known.flatMap(receiver => [...receiver.routed].map(ref => ({ receiver, ref })));
      const chosen = all[which % all.length];
      if (chosen === undefined) return say(': nothing is there');
      const { receiver, ref } = chosen;
      say(`${receiver.open.get(ref)?.event.name ?? 'an ended event'} of ${receiver.name}`);
      const inbox = tenant.inboxOf(receiver);
      const pushed =
        objects.get('Subscription', `${tenant.names.partner}/${receiver.name}`)?.spec.endpoint !== undefined;
      if (outcome === 'skipped') {
        const answer = await operations.skip(inbox, { ref });
        return noteFinish(receiver, ref, outcome, answer);
      }
      const acknowledged = await operations.acknowledge(inbox, [{ ref }]);
      if (acknowledged.answer === 'OK') return noteFinish(receiver, ref, outcome, acknowledged.answers[0] ?? '');
      hold(17, acknowledged.answer === 'PUSHED' && pushed, () => `${receiver.name} answers ${acknowledged.answer}`);
    },
    killDispatcher: (): void => {
      lostFlights.push(...(dispatcher?.work.flights ?? []));
      dispatcher = undefined;
    },
    flights: (): readonly Flight[] => dispatcher?.work.flights ?? [],
    async end(which: number, wanted: Completion['outcome']): Promise<void> {
      const flights = system.flights();
      const flight = flights[which % flights.length];
      if (flight === undefined) return say(': nothing is on its way');
      const { tenant, receiver } = ownerOf(everyTenant, flight.member);
      say(
        `${receiver.open.get(flight.claim.ref)?.event.name ?? 'an ended event'} for ${tenant.name}'s ${receiver.name}`,
      );
      return end(flight, wanted);
    },

    /** For those who look at the whole. */
    check,
    settleAgain: async (name: string): Promise<void> => {
      await settle(name, [], undefined, false);
    },
    /** Whether all that was charged is folded for certain: no router died, and Redis lost nothing. */
    losses: () => ({ routerDied, lostSlots }),
    deliver: (flight: Flight): Promise<void> => end(flight, 'delivered'),
  };
  await system.lead();
  return system;
}
