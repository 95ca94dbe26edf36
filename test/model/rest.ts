import type { RedisClient } from '../../src/redis/client.ts';
import { accountKeys } from '../../src/redis/keys.ts';
import { differencesOf } from './control-state.ts';
import { createController } from './controller.ts';
import { dumpRedis, type RedisDump } from './redis-dump.ts';
import { type System, TENANTS } from './system.ts';
import { PAYER } from './tenant.ts';
import { hold } from './violation.ts';

const MOST_ROUNDS = 100;
/** What is due later is retention, and nothing else. */
const SOON_MS = 20 * 60_000;

function nextDueMs(dump: RedisDump): number | undefined {
  let next: number | undefined;
  for (const [key, members] of dump.sorted) {
    if (!/^\{[rd]:\d+\}:due$/.test(key)) continue;
    for (const ms of Object.values(members)) next = Math.min(next ?? Number(ms), Number(ms));
  }
  return next;
}

/** What the account is told of is what was charged (invariant 19). */
function checkAccount(system: System, dump: RedisDump): void {
  const { routerDied, lostSlots } = system.losses();
  const used = Number(dump.hashes.get(accountKeys(PAYER).meta)?.used ?? 0);
  let tokens = 0;
  for (const { receivers } of system.tenants) for (const receiver of receivers.values()) tokens += receiver.tokens;
  // What a dead router did not fold follows with the next batch for the same integration, if there is one.
  const right = lostSlots || (routerDied ? used <= tokens : used === tokens);
  hold(19, right, () => `the account has used ${used} tokens; it is ${tokens}`);
}

/** Runs everything until nothing is left to do, by the hints alone; then nothing may be missing. */
export async function comeToRest(system: System): Promise<RedisDump> {
  const { clock, objects } = system;
  system.story.push('everything comes to rest');
  await system.lead();
  for (let round = 0; ; round++) {
    hold(25, round < MOST_ROUNDS, () => 'it never comes to rest');
    await system.check(await system.route(0));
    await system.claim(64);
    for (const flight of Array.from(system.flights())) await system.deliver(flight);
    const dump = await system.check();
    const next = nextDueMs(dump);
    if (next !== undefined && next <= clock.ms + SOON_MS) {
      clock.ms = Math.max(clock.ms + 1, next);
      continue;
    }
    // The controller looks again at what could not go before it was drained.
    const before = objects.version();
    for (const name of TENANTS) await system.settleAgain(name);
    if (objects.version() !== before) continue;
    for (const tenant of system.tenants) tenant.checkSettled(dump);
    checkAccount(system, dump);
    return dump;
  }
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
