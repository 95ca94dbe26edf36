import type { RedisClient } from '../../src/redis/client.ts';
import { accountKeys } from '../../src/redis/keys.ts';
import { checkSettled } from './checks/settled.ts';
import { createController } from './processes/controller.ts';
import { ACCOUNTS, accountId } from './state/accounts.ts';
import { differencesOf } from './state/control-state.ts';
import { dumpRedis, type RedisDump } from './state/redis-dump.ts';
import { hold } from './state/violation.ts';
import { type System, TENANTS } from './system.ts';

const MOST_ROUNDS = 100;
/** What is due later is retention, and nothing else. */
const SOON_MS = 20 * 60_000;
/** Rounds without any progress after which nothing is expected any more. */
const IDLE_ROUNDS = 6;
const PLENTY = 10_000;

function nextDueMs(dump: RedisDump): number | undefined {
  let next: number | undefined;
  for (const [key, members] of dump.sorted) {
    if (!/^\{[rda]:\d+\}:due$/.test(key)) continue;
    for (const ms of Object.values(members)) next = Math.min(next ?? Number(ms), Number(ms));
  }
  return next;
}

/** An account counts what was charged (invariant 19). */
function checkAccount(system: System, dump: RedisDump, account: string): void {
  const { routerDied, lostSlots } = system.losses();
  let [folded, tokens] = [0, 0];
  for (const total of Object.values(dump.hashes.get(accountKeys(account).seen) ?? {})) folded += Number(total);
  for (const { payer, receivers } of system.tenants) {
    if (payer === account) for (const receiver of receivers.values()) tokens += receiver.tokens;
  }
  // What a dead router did not fold follows with the next batch for the same integration, if there is one.
  const right = lostSlots || (routerDied ? folded <= tokens : folded === tokens);
  hold(19, right, () => `${account} counts ${folded} tokens; it is ${tokens}`);
}

/** What has become of everything; the same again: nothing happened. */
function progressOf({ tenants, book }: System): string {
  const counts = tenants.flatMap(({ receivers }) =>
    [...receivers.values()].map(({ undecided, routed, replayed, open, final }) => {
      const attempts = [...open.values()].map(each => each.attempts);
      return [undecided.size, routed.size, replayed.size, final.size, ...attempts].join();
    }),
  );
  return [...counts, book.ended()].join(' ');
}

/** Runs everything until nothing is left to do, by the hints alone. */
async function goOn(system: System): Promise<RedisDump> {
  const { clock, objects } = system;
  let progress = '';
  for (let [round, idle] = [0, 0]; ; round++) {
    hold(25, round < MOST_ROUNDS, () => 'it never comes to rest');
    await system.check(await system.route(0));
    await system.claim(64);
    for (const flight of Array.from(system.flights())) await system.deliver(flight);
    await system.partner.sweep();
    const dump = await system.check();
    const before = progress;
    progress = progressOf(system);
    idle = progress === before ? idle + 1 : 0;
    const next = nextDueMs(dump);
    // What waits for tokens, or for an activation, is looked at again and again.
    if (next !== undefined && next <= clock.ms + SOON_MS && idle < IDLE_ROUNDS) {
      clock.ms = Math.max(clock.ms + 1, next);
      continue;
    }
    // The controller looks again at what could not go before it was drained.
    const version = objects.version();
    for (const name of TENANTS) await system.settleAgain(name);
    if (objects.version() === version) return dump;
  }
}

/** Then nothing may be missing, but what tokens are missing for; and nothing at all when there are enough. */
export async function comeToRest(system: System): Promise<RedisDump> {
  system.story.push('everything comes to rest');
  await system.lead();
  const { balances, tenants, book, objects } = system;
  // Endpoints that were disabled would keep what waits for them.
  for (const name of TENANTS) {
    for (const { metadata } of objects.subscriptionsTo(name)) system.enable(metadata.namespace ?? '', metadata.name);
    // In a workspace that is paused it counts when the pause ends.
    if (objects.isPaused(name)) continue;
    await system.change(name, undefined);
    for (const receiver of system.tenantOf(name).receivers.values()) receiver.disabled = false;
  }
  let dump = await goOn(system);
  for (const tenant of tenants) {
    // What a controller left half done in a workspace that is paused waits for the end of the pause.
    if (tenant.isCertain()) {
      checkSettled(tenant, dump, balances.leftForEvents(tenant.payer), objects.isPaused(tenant.name));
    }
  }
  const isHeld = ({ name, payer }: (typeof tenants)[number]) =>
    dump.hashes.has(accountKeys(payer).short) || objects.isPaused(name) || objects.workspace(name) === undefined;
  if (tenants.some(isHeld)) {
    system.story.push('every workspace is there and goes on, and the accounts get tokens for everything');
    for (const name of ACCOUNTS) await system.changeAccount(name, 'Free', PLENTY);
    for (const name of TENANTS) {
      await system.makeWorkspace(name);
      if (objects.isPaused(name)) await system.pause(name, false);
      for (const receiver of system.tenantOf(name).receivers.values()) receiver.disabled = false;
    }
    dump = await goOn(system);
    for (const tenant of tenants) checkSettled(tenant, dump, PLENTY / 2);
  }
  for (const name of ACCOUNTS) checkAccount(system, dump, accountId(name));
  book.checkSettled();
  return dump;
}

/** Path independence (invariant 10): what stands here equals what is made of the objects in an empty Redis. */
export async function compareWithRebuild(system: System, dump: RedisDump, spare: RedisClient): Promise<void> {
  await spare.callAll('FLUSHALL');
  const work = await createController(spare, system.objects, () => system.clock.ms, false);
  await work.lead(TENANTS);
  const rebuilt = await dumpRedis(spare);
  for (const tenant of system.tenants) {
    const [is, anew] = [tenant.controlOf(dump), tenant.controlOf(rebuilt)];
    for (const part of Object.keys(anew) as (keyof typeof anew)[]) {
      const differs = differencesOf(is[part], anew[part]);
      hold(10, differs === '', () => `${part} of ${tenant.name} and, made anew: ${differs}`);
    }
  }
}
