import { randomUUID } from 'node:crypto';
import { generationOf } from '../../src/core/ids/ids.ts';
import { refOfStreamId } from '../../src/core/ids/refs.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import type { Completion } from '../../src/redis/inbox-store.ts';
import { queueKeys } from '../../src/redis/keys.ts';
import { checkWoken, createBalances } from './checks/balances.ts';
import { checkClaim, checkEvent, nameOfClaim, noteEnd, ownerOf } from './checks/deliveries.ts';
import { createReplayBook } from './checks/replay-book.ts';
import { createPartner } from './partner.ts';
import { type Controller, type PairName, pairsOf } from './processes/controller.ts';
import { createDispatcher, type Dispatcher, type Flight } from './processes/dispatcher.ts';
import { createLeadership } from './processes/leadership.ts';
import { createProcess, type Death, type Process } from './processes/process.ts';
import { createRouter, type Router } from './processes/router.ts';
import { createPublisher, refsOf } from './publisher.ts';
import { ACCOUNTS, type AccountName, accountId, PAYERS, PLANS } from './state/accounts.ts';
import type { Routing } from './state/inbox-comparison.ts';
import { createObjects } from './state/objects.ts';
import { changedKeys, changesOf, dropSlot, dumpRedis, type RedisDump } from './state/redis-dump.ts';
import { createModelTenant, type ModelTenant, NAMES } from './state/tenant.ts';
import { hold } from './state/violation.ts';

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
  for (const name of ACCOUNTS) objects.addAccount(name, PLANS[name]);
  for (const name of TENANTS) objects.addWorkspace(name, PAYERS[name] as string);
  const tenants = new Map(TENANTS.map(name => [name as string, createModelTenant(objects, name)]));
  const everyTenant = [...tenants.values()];
  const members = everyTenant.flatMap(({ id, names }) => names.streams.map(stream => `${id}:${stream}`));
  const story: string[] = [];
  const lostFlights: Flight[] = [];
  const routers: (Running<Router> | undefined)[] = [];
  let dispatcher: Running<Dispatcher> | undefined;
  let routerDied = false;
  let lostSlots = false;
  const balances = createBalances(objects, everyTenant, nowMs);
  const book = createReplayBook(nowMs, balances);
  const leadership = createLeadership({ redis, objects, nowMs, tenants: everyTenant, say, onLed: balances.noteLead });

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
      tenant.check(dump, ofTenant, clock.ms, (...replay) => book.eventOf(tenant, ...replay));
    }
    balances.check(dump);
    book.check(dump);
    return dump;
  }

  /** Applies the tenant's objects; a controller that dies of it is followed by another one, later. */
  async function settle(name: string, pairs: readonly PairName[], death: Death | undefined, onlyPairs: boolean) {
    const run = async (work: Controller) => {
      if (onlyPairs) for (const pair of pairs) await work.settlePair(name, pair);
      else await work.settle(name, pairs);
    };
    await leadership.settle([tenantOf(name)], run, death);
  }

  const everyPair = (name: string) => NAMES.integrations.flatMap(integration => pairsOf(objects, name, integration));

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
    /** An account gets another plan, and so many more tokens than it has used. */
    async changeAccount(name: AccountName, plan: 'Free' | 'Metered', more: number, death?: Death): Promise<void> {
      const includedTokens = (balances.of(accountId(name))?.used ?? 0) + more;
      const { spec } = objects.accounts().find(({ metadata }) => metadata.name === name) ?? {};
      objects.changeAccount(name, { owners: [], plan, includedTokens });
      const paying = everyTenant.filter(({ payer }) => payer === accountId(name));
      const done = await leadership.settle(paying, work => work.settleAccount(name), death);
      balances.noteChange(name, done);
      const changes = spec?.plan !== plan || spec.includedTokens !== includedTokens;
      if (done && changes) checkWoken(name, await dumpRedis(redis), clock.ms);
    },
    /** Says in the object that its endpoint works again, after whatever it answered until now. */
    enable(namespace: string, name: string): void {
      const stored = objects.get('Subscription', `${namespace}/${name}`);
      if (stored?.spec.endpoint === undefined || stored.metadata.deletionTimestamp !== undefined) return;
      const endpoint = { ...stored.spec.endpoint, enabledAt: new Date(clock.ms + 1).toISOString() };
      objects.apply('Subscription', namespace, name, { ...stored.spec, endpoint });
    },
    /** Of a tenant that is paused, only closing changes are applied; after the pause all are. */
    async pause(name: string, paused: boolean, death?: Death): Promise<void> {
      // No two queues of one name in one millisecond: what was made meanwhile begins now.
      if (!paused) clock.ms += 1_000;
      objects.setPaused(name, paused);
      await settle(name, everyPair(name), death, false);
    },
    async deleteWorkspace(name: string, death?: Death): Promise<void> {
      objects.markDeleting('Workspace', name);
      await settle(name, [], death, false);
    },
    async makeWorkspace(name: string, death?: Death): Promise<void> {
      if (objects.workspace(name) !== undefined) return;
      objects.addWorkspace(name, PAYERS[name] as string);
      await settle(name, everyPair(name), death, false);
    },
    takeOver: leadership.takeOver,
    lead: async (death?: Death): Promise<void> => {
      if ((await leadership.lead(death)) === undefined) say('— it died');
    },
    isLed: leadership.isLed,

    /** Nothing changed: nothing is written (invariant 9). */
    async resync(name: string, pairs: readonly PairName[]): Promise<void> {
      // What waited for its turn, as a stream that has drained by now, comes first.
      await settle(name, pairs, undefined, false);
      await settle(name, pairs, undefined, false);
      const dump = await dumpRedis(redis);
      const before = await changesOf(redis);
      await leadership.current()?.settle(name, pairs);
      const written = (await changesOf(redis)) - before;
      if (written === 0) return;
      const where = changedKeys(dump, await dumpRedis(redis));
      hold(9, false, () => `${written} writes to Redis (${where.join(', ')}), though nothing of ${name} had changed`);
    },

    publish: createPublisher({ redis, nowMs, tenantOf, say }),
    partner: createPartner({ redis, nowMs, tenantOf, say, book }),
    book,
    balances,

    async route(which: number, death?: Death): Promise<ReadonlyMap<string, Routing>> {
      const { process, work } = (routers[which] ??= startRouter());
      const said = new Map<string, Routing>();
      if (!(await process.live(() => work.work(members, said), death))) {
        routers[which] = undefined;
        routerDied = true;
        balances.noteRouterDeath();
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
            claimed.push(`${receiver.open.get(nameOfClaim(claim))?.event.name} for ${tenant.name}'s ${receiver.name}`);
          }),
        death,
      );
      say(`: ${claimed.join(', ') || 'nothing'}`);
      for (const flight of work.flights) checkEvent(everyTenant, flight);
      if (alive) return;
      system.killDispatcher();
      say('— the dispatcher died');
    },
    /** All that is due is routed, and delivered. */
    async flow(): Promise<void> {
      await check(await system.route(0));
      for (let turn = 0; turn < 2; turn++) {
        await system.claim(64);
        for (const flight of Array.from(system.flights())) await end(flight, 'delivered');
      }
    },
    /** Redis loses one slot, and the controller, which learns of it, rebuilds it from the objects. */
    async loseSlot(name: string, tag: string, forget: (tenant: ModelTenant) => void): Promise<void> {
      const work = await leadership.lead();
      if (work === undefined) return undefined;
      const tenant = tenantOf(name);
      if (objects.isPaused(name)) return say(': not while it is paused');
      await dropSlot(redis, tag);
      clock.ms += 1_000;
      lostSlots = true;
      forget(tenant);
      work.forget(name);
      tenant.begin();
      await work.settle(name, everyPair(name));
      tenant.commit();
      return undefined;
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
        `${receiver.open.get(nameOfClaim(flight.claim))?.event.name ?? 'an ended event'} for ${tenant.name}'s ${receiver.name}`,
      );
      return end(flight, wanted);
    },

    /** For checks of the whole. */
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
