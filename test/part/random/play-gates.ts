import { createSweep } from '../../../src/part/sweep/sweep.ts';
import type { Kind } from './operation.ts';
import type { Play } from './play.ts';
import { sweep } from './reference/learning.ts';
import { KEYS, type World } from './world.ts';

const checked = async (world: World) => world.check(await world.takePushes());
const nameOfSub = ({ incs }: World, pick: <T>(of: readonly T[]) => T | undefined) => pick([...incs.keys()]) as string;

export async function sweepOnce(world: World): Promise<boolean> {
  const answer = await createSweep(world.t.client)(world.t.part, world.sweepState);
  if (answer.answer !== 'OK') throw new Error(answer.answer);
  world.note(JSON.stringify(answer));
  sweep(world.of, answer.expired, await world.dump());
  await checked(world);
  return answer.more;
}

/** Operations of the controller and the sweep. */
export const GATES: Partial<Readonly<Record<Kind, Play>>> = {
  async key(world, { pick, chance }) {
    const slot = world.slot(nameOfSub(world, pick));
    const groupKey = pick(KEYS) as string;
    const isActive = world.of.active.has(slot + groupKey);
    // Setting the current state again has no effect.
    const kind = chance(isActive ? 50 : 10) ? 'off' : 'on';
    world.note(`${kind} ${world.nameOf.get(slot)} ${groupKey}`);
    await world.gate({ kind, slot, groupKey });
    await checked(world);
  },
  async row(world, { pick, below, chance }) {
    const name = nameOfSub(world, pick);
    const slot = world.slot(name);
    const before = world.of.subs.get(slot) ?? world.rowOf(name);
    const changes = [
      { route: 'open' },
      { route: 'open', send: 'open' },
      { route: 'paused' },
      { route: 'paused' },
      { route: chance(70) ? 'open' : 'closed' },
      { send: 'open' },
      { send: 'held' },
      { cap: 1 + below(5) },
    ] as const;
    const change = pick(changes) ?? {};
    const how = pick([undefined, undefined, 'skip', 'behind'] as const);
    world.note(`${name} ${JSON.stringify(change)} ${how ?? ''}`);
    await world.gate({ kind: 'row', slot, row: { ...before, ...change }, ...(how && { how }) });
    await checked(world);
  },
  async enable(world, { pick }) {
    const name = nameOfSub(world, pick);
    const slot = world.slot(name);
    const before = world.of.subs.get(slot) ?? world.rowOf(name);
    world.note(name);
    await world.gate({ kind: 'row', slot, row: { ...before, send: 'open', enabledMs: world.t.clock.ms } });
    await checked(world);
  },
  async endpoint(world, { pick }) {
    const slot = world.slot(nameOfSub(world, pick));
    const has = world.of.endpoints.has(slot);
    world.note(`${world.nameOf.get(slot)} ${has ? 'has none' : 'has one'}`);
    await world.gate({ kind: 'endpoint', slot, sealed: has ? '' : 's' });
    await checked(world);
  },
  async tokens(world, { below, chance }) {
    const granted = chance(70) ? '' : String(world.of.used + below(12));
    world.note(granted === '' ? 'no bound' : granted);
    await world.gate({ kind: 'meta', field: 'granted', value: granted });
    await checked(world);
  },
  async 'lose marker'(world) {
    world.of.hasMarker = false;
    await world.redis.call('hdel', world.t.keys.keys, '');
    await checked(world);
  },
  async 'write marker'(world) {
    await world.gate({ kind: 'marker' });
    await checked(world);
  },
  async close(world, { pick, chance }) {
    const { isReady, state } = world.of;
    const change = chance(50)
      ? ({ field: 'state', value: state === 'open' && chance(30) ? 'closing' : 'open' } as const)
      : ({ field: 'ready', value: isReady && chance(30) ? '' : '1' } as const);
    const bytes = { field: 'maxBytes', value: pick([String(2 ** 40), '30000']) as string } as const;
    const chosen = chance(50) ? change : bytes;
    world.note(`${chosen.field} ${chosen.value}`);
    await world.gate({ kind: 'meta', ...chosen });
    await checked(world);
  },
  async 'delete subscription'(world, { pick, chance, below }) {
    const name = nameOfSub(world, pick);
    const slot = world.slot(name);
    const how = chance(50) ? ({ how: 'delete' } as const) : {};
    world.note(`${name} ${JSON.stringify(how)}`);
    await world.gate(
      { kind: 'drop', slot, ...how },
      ...KEYS.map(groupKey => ({ kind: 'off' as const, slot, groupKey })),
    );
    await checked(world);
    world.incs.set(name, (world.incs.get(name) as number) + 1);
    const fresh = world.slot(name);
    await world.gate(
      { kind: 'row', slot: fresh, row: world.rowOf(name, { since: world.of.tail }) },
      { kind: 'endpoint', slot: fresh, sealed: name === 'pulled' ? '' : 's' },
      ...world.activeKeys(below(3)).map(groupKey => ({ kind: 'on' as const, slot: fresh, groupKey })),
    );
    await checked(world);
  },
  async sweep(world, { below }) {
    for (let calls = 1 + below(3); calls > 0; calls--) if (!(await sweepOnce(world))) break;
  },
};
