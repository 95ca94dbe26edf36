import type { Completion } from '../../src/part/claims/exchange.ts';
import type { FindStream } from '../../src/part/inbox/find-part.ts';
import { createBalances } from './checks/balances.ts';
import { checkClaims, checkFlight, noteReport, ownerOf } from './checks/deliveries.ts';
import { createReplayBook } from './checks/replay-book.ts';
import { createFleet } from './fleet.ts';
import type { Stage } from './histories.ts';
import { createPartner } from './partner.ts';
import { type Controller, type PairName, pairsOf } from './processes/controller.ts';
import type { Flight, Job, Report } from './processes/dispatcher.ts';
import { createLeadership } from './processes/leadership.ts';
import { type Death, onClock } from './processes/process.ts';
import { createPublisher } from './publisher.ts';
import { createReader } from './reader.ts';
import { ACCOUNTS, type AccountName, accountId, PAYERS, PLANS } from './state/accounts.ts';
import { deliveryName, type Receiver } from './state/expectation.ts';
import { createObjects } from './state/objects.ts';
import { createModelTenant, type ModelTenant, NAMES } from './state/tenant.ts';
import { hold } from './state/violation.ts';
import { changedKeys, changesOf, dropSlot, dumpWorld, nameOf, type WorldDump } from './state/world-dump.ts';

export const START_MS = 1_800_000_000_000;
export const TENANTS = ['acme', 'bolt'] as const;
export type TenantName = (typeof TENANTS)[number];

/** A run with two tenants that use equal names for everything in one Redis, and the processes that serve them. */
export type System = Awaited<ReturnType<typeof createSystem>>;

const partsOf = ({ parts }: WorldDump) => [...parts.values()].map(({ part }) => part);

export async function createSystem({ redis: real, pushes }: Stage) {
  await real.callAll('FLUSHALL');
  // This belongs to the previous history.
  await pushes.take();
  const clock = { ms: START_MS };
  const nowMs = () => clock.ms;
  const redis = onClock(real, nowMs);
  const objects = createObjects(nowMs);
  for (const name of ACCOUNTS) objects.addAccount(name, PLANS[name]);
  for (const name of TENANTS) objects.addWorkspace(name, PAYERS[name] as string);
  const tenants = new Map(TENANTS.map(name => [name as string, createModelTenant(objects, name, nowMs)]));
  const everyTenant = [...tenants.values()];
  const story: string[] = [];
  const dump = () => dumpWorld(real, START_MS, clock.ms);
  let before = await dump();
  /** The responses of the exchanges in this step. */
  const reports: Report[] = [];
  const balances = createBalances(objects, everyTenant, account => book.spentBy(account));
  const book = createReplayBook(nowMs, account => balances.leftForReplays(account));
  const leadership = createLeadership({ redis, objects, nowMs, tenants: everyTenant, say, onLed: balances.noteLead });
  const fleet = createFleet({ redis, nowMs, onReport: report => reports.push(report) });
  const findStream: FindStream = inbox => {
    for (const tenant of everyTenant) {
      for (const receiver of tenant.receivers.values()) {
        const { sub, inc } = tenant.inboxOf(receiver);
        if (sub === inbox.sub && inc === inbox.inc) return { tenant: tenant.id, queue: receiver.stream };
      }
    }
    return undefined;
  };

  function tenantOf(name: string): ModelTenant {
    return tenants.get(name) as ModelTenant;
  }

  function say(text: string): void {
    story[story.length - 1] += ` ${text}`;
  }

  function unansweredOf(receiver: Receiver): Map<string, Completion> {
    const lost = reports.filter(({ answers }) => answers === undefined).flatMap(({ completions }) => completions);
    const own = lost.filter(({ lane }) => lane.startsWith(receiver.slot));
    return new Map(own.map(each => [nameOf(each.lane, each.ref), each]));
  }

  async function check(): Promise<WorldDump> {
    for (const report of reports) noteReport(everyTenant, before, report, clock.ms);
    const after = await dump();
    for (const tenant of everyTenant) {
      tenant.check(after, {
        replayedEvent: (...replay) => book.eventOf(tenant, ...replay),
        unanswered: unansweredOf,
      });
    }
    checkClaims(everyTenant, before, after, reports, clock.ms);
    book.check(after);
    balances.check(after);
    reports.length = 0;
    before = after;
    await pushes.follow(partsOf(after));
    await fleet.hear(await pushes.take());
    for (const flight of fleet.flights()) checkFlight(everyTenant, flight);
    return after;
  }

  /** Applies the tenant's objects. If the controller crashes, it is replaced by another controller later. */
  async function settle(name: string, pairs: readonly PairName[], death: Death | undefined, onlyPairs: boolean) {
    const run = async (work: Controller) => {
      if (onlyPairs) for (const pair of pairs) await work.settlePair(name, pair);
      else await work.settle(name, pairs);
    };
    await leadership.settle([tenantOf(name)], run, death);
  }

  const everyPair = (name: string) => NAMES.integrations.flatMap(integration => pairsOf(objects, name, integration));

  function end(flight: Flight, wanted: Completion['outcome']): void {
    const { attempts } = flight.claim;
    const isLast = wanted === 'failed' && attempts >= 2;
    const outcome = flight.body === undefined ? 'released' : isLast ? 'dead' : wanted;
    fleet.end(flight, outcome, clock.ms + 5_000 * (attempts + 1));
  }

  /** Performs one action of a dispatcher in every part, followed by a comparison of everything. */
  async function work(which: number, job: Job, most: number, death?: Death): Promise<WorldDump> {
    if (!(await fleet.work(which, job, partsOf(before), most, death))) say('— the dispatcher died');
    return check();
  }

  const system = {
    redis,
    clock,
    objects,
    story,
    say,
    tenantOf,
    tenants: everyTenant,

    /** Runs an action with a line of the story and all checks. */
    async step(text: string, run: () => Promise<unknown>): Promise<void> {
      story.push(text);
      await run();
      await check();
    },

    /** Applies a change of the routes and of the affected `pairs`. */
    change: (name: string, death: Death | undefined, pairs: readonly PairName[] = []) =>
      settle(name, pairs, death, false),
    /** Applies a change of an activation. */
    changePair: (name: string, pair: PairName, death: Death | undefined) => settle(name, [pair], death, true),
    /** Gives an account a different plan, with this number of tokens in addition to the tokens it has used. */
    async changeAccount(name: AccountName, plan: 'Free' | 'Metered', more: number, death?: Death): Promise<void> {
      const includedTokens = (balances.of(accountId(name))?.used ?? 0) + more;
      objects.changeAccount(name, { owners: [], plan, includedTokens });
      const paying = everyTenant.filter(({ payer }) => payer === accountId(name));
      const done = await leadership.settle(paying, controller => controller.settleAccount(name), death);
      balances.noteChange(name, done);
    },
    /** Specifies in the object that its endpoint works again regardless of earlier responses. */
    enable(namespace: string, name: string): void {
      const stored = objects.get('Subscription', `${namespace}/${name}`);
      if (stored?.spec.endpoint === undefined || stored.metadata.deletionTimestamp !== undefined) return;
      const endpoint = { ...stored.spec.endpoint, enabledAt: new Date(clock.ms + 1).toISOString() };
      objects.apply('Subscription', namespace, name, { ...stored.spec, endpoint });
    },
    /** For a paused tenant, only closing changes are applied. After the pause, all changes are applied. */
    async pause(name: string, paused: boolean, death?: Death): Promise<void> {
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

    /** Checks that nothing is written if nothing has changed (invariant 9). */
    async resync(name: string, pairs: readonly PairName[]): Promise<void> {
      // Waiting work, such as a stream that has been drained, comes first.
      await settle(name, pairs, undefined, false);
      await settle(name, pairs, undefined, false);
      const stood = await dump();
      const changes = await changesOf(real);
      await leadership.current()?.settle(name, pairs);
      const written = (await changesOf(real)) - changes;
      if (written === 0) return;
      const where = changedKeys(stood, await dump());
      hold(9, false, () => `${written} writes to Redis (${where.join(', ')}), though nothing of ${name} had changed`);
    },

    publish: createPublisher({ redis, nowMs, dump, tenantOf, say }),
    partner: createPartner({ redis, nowMs, tenantOf, findStream, say, book }),
    reader: createReader({ redis, nowMs, findStream, tenants: everyTenant }),
    book,
    balances,

    work,
    /** Routes and delivers everything that is due. */
    async flow(): Promise<void> {
      await check();
      for (const job of ['tokens', 'sweep', 'advance'] as const) await fleet.work(0, job, partsOf(before), 0);
      await check();
      for (const which of [0, 1]) {
        await fleet.work(which, 'exchange', partsOf(before), 64);
        await fleet.work(which, 'evict', partsOf(before), 0);
      }
      await check();
      for (const flight of fleet.flights()) end(flight, 'delivered');
      for (const which of [0, 1]) await fleet.work(which, 'exchange', partsOf(before), 0);
      await check();
    },
    /** Redis loses a slot. The controller detects the loss and rebuilds the slot from the objects. */
    async loseSlot(name: string, tag: string, forget: (tenant: ModelTenant, dump: WorldDump) => void): Promise<void> {
      const controller = await leadership.lead();
      if (controller === undefined) return undefined;
      const tenant = tenantOf(name);
      if (objects.isPaused(name)) return say(': not while it is paused');
      const stood = await check();
      await dropSlot(real, tag);
      clock.ms += 1_000;
      forget(tenant, stood);
      controller.forget(name);
      tenant.begin();
      await controller.settle(name, everyPair(name));
      tenant.commit();
      return undefined;
    },
    killDispatcher: fleet.kill,
    flights: fleet.flights,
    /** Ends an attempt. The next exchange reports this to Redis. */
    async end(which: number, wanted: Completion['outcome']): Promise<void> {
      const flights = fleet.flights();
      const flight = flights[which % flights.length];
      if (flight === undefined) return say(': nothing is on its way');
      const { tenant, receiver } = ownerOf(everyTenant, flight.claim.slot);
      const name = deliveryName(flight.claim.ref, flight.claim.replay);
      say(`${receiver.open.get(name)?.event.name ?? 'an ended event'} for ${tenant.name}'s ${receiver.name}`);
      end(flight, wanted);
    },

    /** The data for checks of the complete state. */
    check,
    settleAgain: async (name: string): Promise<void> => {
      await settle(name, [], undefined, false);
    },
  };
  await system.lead();
  return system;
}
