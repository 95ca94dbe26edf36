import { EVENT_STATES } from '../../../src/core/events/event-state.ts';
import { inboxRefOf, partRefOf } from '../../../src/part/inbox/ref-names.ts';
import { createWalkSlot } from '../../../src/part/inbox/walk.ts';
import { createPartInboxOperations } from '../../../src/part/owner/operations.ts';
import { createPartInboxRecovery } from '../../../src/part/owner/recovery.ts';
import { createPartReplayInboxes } from '../../../src/part/owner/replays.ts';
import { cutOf } from './dump.ts';
import type { Choices, Kind } from './operation.ts';
import type { Play } from './play.ts';
import { finish, permissionOf, pullable, recover, replay, sendTest, skipUpTo, stateOf } from './reference/owner.ts';
import { type Delivery, hold, isTest, same } from './reference/reference.ts';
import { KEYS, type World } from './world.ts';

const checked = async (world: World) => world.check(await world.takePushes());
const FINAL_STATES = ['dead', 'skipped', 'expired'] as const;
const OPEN_STATES = ['pending', 'inflight', 'retrying'] as const;
/** The maximum number of test events per millisecond. */
const TEST_NUMBERS = 32;

function nameOf(world: World, { pick }: Choices): [name: string, slot: string] {
  const name = pick([...world.incs.keys()]) as string;
  return [name, world.slot(name)];
}

const operationsOf = (world: World) => createPartInboxOperations(world.client, world.findSlot);
const refOf = ({ ref, replay: replayId }: Delivery) => ({ ref: inboxRefOf(ref), replayId });

/** Returns some distinct deliveries of a slot, preferably open ones. */
function someOf({ of }: World, { pick, chance, below }: Choices, slot: string): Delivery[] {
  const all = [...of.deliveries.values()].filter(each => each.slot === slot);
  const open = all.filter(({ record }) => record === undefined);
  const some = new Set<Delivery>();
  for (let i = 1 + below(3); i > 0; i--) {
    const each = pick(chance(80) ? open : all);
    if (each !== undefined) some.add(each);
  }
  return [...some];
}

async function acknowledge(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices.chance(60) ? { ...choices, pick: () => 'pulled' as never } : choices);
  const some = someOf(world, choices, slot);
  if (some.length === 0) return;
  world.note(`${name}: ${some.map(({ entry }) => JSON.stringify(entry)).join()}`);
  const answer = await operationsOf(world).acknowledge(world.inboxOf(name), some.map(refOf));
  const expected = finish(world.of, some, 'delivered');
  same('answer', answer, expected === 'PUSHED' ? { answer: 'PUSHED' } : { answer: 'OK', answers: expected });
  await checked(world);
}

async function skip(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices);
  const [delivery] = someOf(world, choices, slot);
  if (delivery === undefined) return;
  world.note(`${name}: ${JSON.stringify(delivery.entry)}`);
  const answer = await operationsOf(world).skip(world.inboxOf(name), refOf(delivery));
  world.note(answer);
  same('answer', [answer], finish(world.of, [delivery], 'skipped'));
  await checked(world);
}

async function skipMany(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices);
  const ref = choices.pick([...world.of.events.keys()]);
  if (ref === undefined) return;
  const groupKey = choices.chance(50) ? choices.pick(KEYS) : undefined;
  world.note(`${name}: up to ${ref} ${groupKey ?? ''}`);
  const { skipUpTo: skipped } = operationsOf(world);
  const answer = await skipped(world.inboxOf(name), inboxRefOf(ref), { groupKey });
  same('answer', answer, { answer: 'OK', skipped: skipUpTo(world.of, slot, ref, groupKey) });
  await checked(world);
}

async function pull(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices.chance(60) ? { ...choices, pick: () => 'pulled' as never } : choices);
  const all = choices.chance(50);
  const limit = choices.pick([2, 250]) as number;
  const answer = await operationsOf(world).pull(world.inboxOf(name), { limit, all });
  world.note(`${name}, ${all ? 'all' : 'heads'}, ${limit}: ${answer.answer}`);
  const word = permissionOf(world.of, slot) ?? (world.of.endpoints.has(slot) ? 'PUSHED' : 'OK');
  same('answer', answer.answer, word);
  if (answer.answer === 'OK') {
    const texts = answer.events.map(({ ref, replayId, groupKey }) => `${groupKey} ${partRefOf(ref)} ${replayId}`);
    const expected = pullable(world.of, slot, all, world.before).map(
      each => `${each.groupKey} ${each.ref} ${each.replay}`,
    );
    const strange = texts.filter(text => !expected.includes(text));
    same('pulled, and should not', strange, []);
    hold(new Set(texts).size === texts.length, () => 'one is pulled twice');
    // Replay events removed by the retention period are still counted.
    if (limit > expected.length) same('pulled', texts.length, expected.length);
  }
  await checked(world);
}

async function recoverAll(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices);
  const recovery = createPartInboxRecovery(world.client, world.findSlot, 3);
  const word = permissionOf(world.of, slot);
  let [recovered, replayRequired] = [0, 0];
  for (let cursor: string | undefined, calls = 0; ; calls++) {
    const answer = await recovery.recover(world.inboxOf(name), { sinceMs: 1, cursor });
    same('answer', answer.answer, word ?? 'OK');
    if (answer.answer !== 'OK') return;
    recovered += answer.recovered;
    replayRequired += answer.replayRequired;
    cursor = answer.cursor;
    if (cursor === undefined) break;
    hold(calls < 1_000, () => 'there is always more to recover');
  }
  world.note(`${name}: ${recovered}, not ${replayRequired}`);
  same('recovered', { recovered, replayRequired }, recover(world.of, slot, world.before));
  await checked(world);
}

async function replaySome(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices);
  const { chance, pick, below } = choices;
  const listed = world.of.lists.get(slot) ?? [];
  if (listed.length === 0) return;
  const refs = [...new Set(Array.from({ length: 1 + below(3) }, () => pick(listed) as string))];
  const inboxes = createPartReplayInboxes(world.client, world.findSlot);
  const inbox = world.inboxOf(name);
  const replayId = `r${world.replays++}`;
  const place = await inboxes.placeOf(inbox);
  const chunk = { inbox, replayId, number: 0, refs: refs.map(inboxRefOf), place };
  const answer = await inboxes.enqueue(chunk as unknown as Parameters<typeof inboxes.enqueue>[0]);
  world.note(`${name} ${replayId}: ${refs.join()}: ${answer}`);
  same('answer', answer, replay(world.of, slot, replayId, refs, world.before));
  await checked(world);
  if (answer === undefined || chance(70)) return;
  // It is only added once.
  same('answer', await inboxes.enqueue(chunk as unknown as Parameters<typeof inboxes.enqueue>[0]), answer);
  await checked(world);
}

async function test(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices);
  const answer = await world.recovery.sendTest(world.inboxOf(name));
  world.note(`${name}: ${JSON.stringify(answer)}`);
  const number = world.tests++ % TEST_NUMBERS;
  const expected = sendTest(world.of, slot, number);
  same('answer', answer.answer === 'OK' ? partRefOf(answer.ref) : answer.answer, expected);
  await checked(world);
}

/** Lists the events visible to an owner and compares their states. */
async function look(world: World, choices: Choices): Promise<void> {
  const [name, slot] = nameOf(world, choices);
  const walk = createWalkSlot(world.client);
  const states = choices.pick([EVENT_STATES, FINAL_STATES, OPEN_STATES]) ?? EVENT_STATES;
  const newestFirst = choices.chance(50);
  const at = { part: world.t.part, slot };
  const cut = cutOf(world.before);
  const seen: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await walk(at, { states, newestFirst, most: 4, after });
    if (page.answer !== 'OK') throw new Error('GONE');
    for (const each of page.events) {
      // Events which are being removed may still be listed.
      if (states === EVENT_STATES && each.ref <= cut) continue;
      seen.push(`${each.ref}${each.replayId === undefined ? '' : `:${each.replayId}`} ${each.progress.state}`);
    }
    after = page.after;
    if (after === undefined) break;
  }
  world.note(`${name}: ${states.join()}`);
  const isListed = (each: Delivery) =>
    states !== EVENT_STATES || (each.replay === undefined && world.of.events.has(each.ref) && each.ref > cut);
  const isKnown = (each: Delivery) => states !== OPEN_STATES || world.of.events.has(each.ref);
  const expected = [...world.of.deliveries.values()]
    .filter(each => each.slot === slot && !isTest(each) && isListed(each) && isKnown(each))
    .map(each => `${each.name.slice(8)} ${stateOf(world.of, each)}`)
    .filter(text => (states as readonly string[]).includes(text.split(' ')[1] as string))
    .sort();
  same('what is listed', newestFirst ? seen.toReversed() : seen, expected);
}

/** Operations of subscription owners. */
export const OWNER: Partial<Readonly<Record<Kind, Play>>> = {
  acknowledge,
  skip,
  'skip up to': skipMany,
  pull,
  recover: recoverAll,
  replay: replaySome,
  'send test': test,
  look,
};
