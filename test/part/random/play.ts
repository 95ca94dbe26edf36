import { expect } from 'vitest';
import type { Claim, Push } from '../../../src/part/claims/message.ts';
import { event, READY_MS } from '../../support/part/part.ts';
import { type Choices, choicesOf, type Kind, type Operation } from './operation.ts';
import { GATES } from './play-gates.ts';
import { OWNER } from './play-owner.ts';
import { evict, exchange } from './reference/attempts.ts';
import { advance } from './reference/learning.ts';
import { same } from './reference/reference.ts';
import { ingest } from './reference/routing.ts';
import { KEYS, type Process, SICK, type World } from './world.ts';

export type Play = (world: World, choices: Choices) => Promise<void>;
const WAITS_MS = [1, 10, 200, 1_000, READY_MS, 10_000, 30_000];

async function ingestSome(world: World, { below, chance }: Choices): Promise<void> {
  const events = Array.from({ length: 1 + below(4) }, () => {
    const body = Buffer.alloc(chance(10) ? 16_385 : 10);
    const id = below(40);
    const groupKey = chance(4) ? '' : (KEYS[below(KEYS.length)] as string);
    return event(groupKey, chance(50) ? { body } : { body, senderId: `s${id}` });
  });
  world.note(events.map(({ groupKey, senderId }) => `${groupKey}${senderId ? ` as ${senderId}` : ''}`).join(', '));
  const answer = await world.t.ingest(...events);
  const expected = ingest(world.of, events, world.before);
  const is = answer.answer === 'OK' ? answer.events : answer.answer;
  world.note(JSON.stringify(is));
  same('answer', is, expected);
  await world.check(await world.takePushes());
}

/** Processes the claims of all pushes that a process has received. */
export function readPushes(process: Process): void {
  for (const push of process.inbox.splice(0)) {
    for (const { claims } of push.events) for (const claim of claims) process.held.set(claim.lane, claim);
    process.pushed = push.pushed;
    process.bytes = push.bytes;
  }
}

export async function exchangeOnce(
  world: World,
  process: Process,
  most: number,
  limit: number,
  { isLost = false, isPushed = true } = {},
): Promise<readonly Claim[]> {
  const holding = world.holdingOf(process, { limit, ...(isPushed ? {} : { roomBytes: 0 }) });
  const completions = process.ended.splice(0);
  const texts = completions.map(({ lane, ref, outcome }) => `${JSON.stringify(lane)} ${ref} ${outcome}`);
  world.note(`${process.name} (${holding.held} of ${limit}) ends [${texts.join(', ')}], asks for ${most}`);
  if (isLost) process.earlier = [holding, completions, most];
  const answer = await world.exchange(world.t.part, holding, completions, most);
  if (answer.answer === 'GONE') throw new Error('GONE');
  const claims = answer.events.flatMap(each => each.claims);
  world.note(
    `${answer.answers.join()}; claims ${claims.map(({ lane, ref }) => `${JSON.stringify(lane)} ${ref}`).join(', ')}`,
  );
  const after = await world.dump();
  exchange(world.of, answer, holding, completions, most, after);
  if (isLost) process.ended.unshift(...completions);
  else {
    for (const claim of claims) process.held.set(claim.lane, claim);
    process.pushed = answer.pushed;
    process.bytes = answer.bytes;
    for (const name of answer.lapsed) world.dead.add(name);
  }
  // The dispatcher which runs an exchange receives its claims in the response.
  await world.check(await world.takePushes(), true);
  return claims;
}

const REASONS = {
  delivered: '200',
  failed: '500',
  dead: '500',
  gone: '410',
  released: 'unread',
  expired: 'late',
} as const;

const ATTEMPTED = { delivered: 'Succeeded', failed: 'HttpError', dead: 'Timeout', gone: 'HttpError' } as const;

function endOne(world: World, process: Process, { below, pick, chance }: Choices): void {
  const claim = pick([...process.held.values()]);
  if (claim === undefined) return;
  const isSick = SICK.includes(world.nameOf.get(claim.slot) ?? '') && chance(75);
  const common = isSick
    ? (['failed', 'failed', 'dead'] as const)
    : (['delivered', 'delivered', 'delivered', 'failed', 'dead', 'released'] as const);
  const outcome = pick<(typeof common)[number]>(common) ?? 'delivered';
  const rare = chance(2) ? 'gone' : chance(2) ? 'expired' : outcome;
  process.held.delete(claim.lane);
  world.note(`${process.name}: ${JSON.stringify(claim.lane)} ${claim.ref} ${rare}`);
  process.ended.push({
    lane: claim.lane,
    ref: claim.ref,
    outcome: rare,
    reason: REASONS[rare],
    ...(rare !== 'released' && rare !== 'expired' ? { latencyMs: 5, attempted: ATTEMPTED[rare] } : {}),
    ...(rare === 'failed' ? { dueMs: world.t.clock.ms + (pick([0, 400, 5_000]) ?? 0) } : {}),
    ...(chance(20) ? { responseBody: Buffer.alloc(1 + below(9_000), 'b') } : {}),
  });
}

/** Compares the claims of a process with its claims in Redis, and releases those that the process does not know. */
export async function reclaim(world: World, process: Process): Promise<void> {
  const own = await world.t.own(process.name);
  const expected = [...world.of.claims].filter(([, { by }]) => by === process.name);
  const texts = (of: readonly { lane: string; ref: string }[]) => of.map(({ lane, ref }) => lane + ref).sort();
  same('own claims', texts(own), texts(expected.map(([lane, { delivery }]) => ({ lane, ref: delivery.ref }))));
  readPushes(process);
  process.pushed = world.of.ready.get(process.name)?.pushed ?? process.pushed;
  process.bytes = world.of.ready.get(process.name)?.bytes ?? process.bytes;
  for (const { lane, ref } of own) {
    const isKnown =
      process.held.get(lane)?.ref === ref || process.ended.some(each => each.lane === lane && each.ref === ref);
    if (!isKnown) process.ended.push({ lane, ref, outcome: 'released', reason: 'unread' });
  }
  for (const [lane, claim] of process.held) {
    if (!own.some(each => each.lane === lane && each.ref === claim.ref)) process.held.delete(lane);
  }
  // A stale claim may still end an event which is claimed by another dispatcher.
  await world.check(await world.takePushes());
}

export async function advanceOnce(world: World): Promise<boolean> {
  const answer = await world.t.advance();
  world.note(JSON.stringify(answer));
  advance(world.of, answer, await world.dump());
  await world.check(await world.takePushes());
  return answer.answer === 'OK' && answer.more;
}

export async function evictDead(world: World): Promise<void> {
  for (const name of world.dead) {
    const answer = await world.t.evict(name);
    const expected = evict(world.of, name);
    world.note(`${name}: ${JSON.stringify(answer)}`);
    same(`evict ${name}`, answer, expected);
    if (answer.answer === 'OK') world.dead.delete(name);
    await world.check(await world.takePushes());
  }
}

const processOf = (world: World, { pick }: Choices) => pick(world.processes) as Process;
const none: readonly Push[] = [];

const ATTEMPTS: Partial<Readonly<Record<Kind, Play>>> = {
  ingest: ingestSome,
  exchange: async (world, c) => void (await exchangeOnce(world, processOf(world, c), 1 + c.below(8), 1 + c.below(24))),
  'lose answer': async (world, c) => void (await exchangeOnce(world, processOf(world, c), 4, 20, { isLost: true })),
  async 'call late'(world, c) {
    const process = processOf(world, c);
    const { number } = world.of.ready.get(process.name) ?? {};
    // The part does not store calls to which it responded with CLOSED or HELD.
    if (process.earlier === undefined || number === undefined || process.earlier[0].number > number) return;
    await expect(world.exchange(world.t.part, ...process.earlier)).rejects.toThrow('later exchange');
    await world.check(await world.takePushes());
  },
  end: async (world, c) => endOne(world, processOf(world, c), c),
  'read pushes': async (world, c) => readPushes(processOf(world, c)),
  'lose pushes': async (world, c) => void processOf(world, c).inbox.splice(0),
  reclaim: async (world, c) => reclaim(world, processOf(world, c)),
  advance: async world => void (await advanceOnce(world)),
  evict: evictDead,
  async die(world, { below }) {
    const at = below(world.processes.length);
    const process = world.processes[at] as Process;
    world.dead.add(process.name);
    world.processes[at] = world.newProcess();
    world.note(`${process.name}, with ${process.held.size}`);
  },
  async wait(world, { pick, chance }) {
    const ms = chance(2) ? 3_600_000 : (pick(WAITS_MS) as number);
    world.note(`${ms} ms`);
    world.wait(ms);
    // Checks changes that are only caused by time.
    await world.check(none, true);
  },
};

const PLAYS: Partial<Readonly<Record<Kind, Play>>> = { ...ATTEMPTS, ...GATES, ...OWNER };

/** Performs one operation and compares the states. */
export async function playOperation(world: World, operation: Operation): Promise<void> {
  world.notes.length = 0;
  const play = PLAYS[operation.kind];
  if (play !== undefined) await play(world, choicesOf(operation));
}
