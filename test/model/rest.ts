import type { RedisClient } from '../../src/redis/client.ts';
import { accountKeys } from '../../src/redis/keys.ts';
import { checkSettled } from './checks/settled.ts';
import { createController } from './processes/controller.ts';
import { READY_MS } from './processes/dispatcher.ts';
import { onClock } from './processes/process.ts';
import { ACCOUNTS, accountId } from './state/accounts.ts';
import { differencesOf } from './state/control-state.ts';
import { hold } from './state/violation.ts';
import { dumpWorld, type WorldDump } from './state/world-dump.ts';
import { START_MS, type System, TENANTS } from './system.ts';

const MOST_ROUNDS = 150;
/** The number of rounds without progress before giving up. Endpoint probes are at least half a minute apart. */
const IDLE_ROUNDS = 4;
const PLENTY = 10_000;

/** Returns the time at which a part or an account has due work. */
function nextDueMs({ parts, sorted }: WorldDump): number {
  const retries = [...parts.values()].flatMap(part => [...part.retries.values()]);
  const hints = [...sorted].flatMap(([key, due]) =>
    /^\{a:\d+\}:due$/.test(key) ? Object.values(due).map(Number) : [],
  );
  return Math.min(...retries, ...hints);
}

/** Checks that an account has counted all charges (invariant 19). */
function checkAccount(system: System, dump: WorldDump, account: string): void {
  const counted = Number(dump.hashes.get(accountKeys(account).meta)?.['used'] ?? 0);
  const { spent } = system.balances.of(account) ?? { spent: 0 };
  hold(19, counted === spent, () => `${account} counts ${counted} tokens; it is ${spent}`);
}

/** Returns the complete state. If it is unchanged, nothing has happened. */
function progressOf({ tenants, book }: System): string {
  const counts = tenants.flatMap(({ receivers }) =>
    [...receivers.values()].map(({ undecided, routed, replayed, open, final }) => {
      const attempts = [...open.values()].map(each => each.attempts);
      return [undecided.size, routed.size, replayed.size, final.size, ...attempts].join();
    }),
  );
  return [...counts, book.ended()].join(' ');
}

/** Runs everything until there is no more work. */
async function goOn(system: System): Promise<WorldDump> {
  const { clock, objects } = system;
  let progress = '';
  for (let [round, idle] = [0, 0]; ; round++) {
    hold(25, round < MOST_ROUNDS, () => 'it never comes to rest');
    await system.flow();
    await system.partner.sweep();
    const dump = await system.check();
    const before = progress;
    progress = progressOf(system);
    idle = progress === before ? idle + 1 : 0;
    if (idle < IDLE_ROUNDS) {
      const next = nextDueMs(dump);
      clock.ms = Number.isFinite(next) ? Math.max(clock.ms + READY_MS, next) : clock.ms + READY_MS;
      continue;
    }
    // The controller checks again for data that could not be removed before it was drained.
    const version = objects.version();
    for (const name of TENANTS) await system.settleAgain(name);
    if (objects.version() === version) return dump;
    idle = 0;
  }
}

/**
 * Enables disabled endpoints, which would keep their waiting events. For a paused workspace, this takes effect at the
 * end of the pause.
 */
async function enableAll(system: System, name: string): Promise<void> {
  const { objects } = system;
  for (const { metadata } of objects.subscriptionsTo(name)) system.enable(metadata.namespace ?? '', metadata.name);
  if (objects.isPaused(name)) return;
  await system.change(name, undefined);
  for (const receiver of system.tenantOf(name).receivers.values()) receiver.disabled = false;
}

/**
 * Ends the faults. Afterwards, events can only be missing because of tokens, and not at all if there are enough tokens.
 */
export async function comeToRest(system: System): Promise<WorldDump> {
  system.story.push('everything comes to rest');
  await system.lead();
  const { balances, tenants, book, objects } = system;
  for (const name of TENANTS) await enableAll(system, name);
  let dump = await goOn(system);
  for (const tenant of tenants) {
    // Unfinished controller work in a paused workspace waits for the end of the pause.
    if (tenant.isCertain()) checkSettled(tenant, balances.leftForEvents(tenant.payer));
  }
  const isHeld = ({ name, payer }: (typeof tenants)[number]) =>
    dump.hashes.has(accountKeys(payer).short) || objects.isPaused(name) || objects.workspace(name) === undefined;
  if (tenants.some(isHeld)) {
    system.story.push('every workspace is there and goes on, and the accounts get tokens for everything');
    for (const name of ACCOUNTS) await system.changeAccount(name, 'Free', PLENTY);
    for (const name of TENANTS) {
      await system.makeWorkspace(name);
      if (objects.isPaused(name)) await system.pause(name, false);
      // This includes endpoints that responded with 410 to earlier events only now.
      await enableAll(system, name);
    }
    dump = await goOn(system);
    for (const tenant of tenants) checkSettled(tenant, PLENTY / 2);
  }
  for (const name of ACCOUNTS) checkAccount(system, dump, accountId(name));
  book.checkSettled();
  await system.reader.askAll();
  return dump;
}

/** Checks path independence (invariant 10): the state equals the state created from the objects in an empty Redis. */
export async function compareWithRebuild(system: System, dump: WorldDump, spare: RedisClient): Promise<void> {
  await spare.callAll('FLUSHALL');
  const nowMs = () => system.clock.ms;
  const work = await createController(onClock(spare, nowMs), system.objects, nowMs, false);
  await work.lead(TENANTS);
  const rebuilt = await dumpWorld(spare, START_MS, nowMs());
  for (const tenant of system.tenants) {
    const [is, anew] = [tenant.controlOf(dump), tenant.controlOf(rebuilt)];
    for (const piece of Object.keys(anew) as (keyof typeof anew)[]) {
      const differs = differencesOf(is[piece], anew[piece]);
      hold(10, differs === '', () => `${piece} of ${tenant.name} and, made anew: ${differs}`);
    }
  }
}
