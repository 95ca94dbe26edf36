import { checkHit } from '../checks/endpoint-rules.ts';
import { slotOf } from '../part/part.ts';
import { die, dropConnection, loseAnswer } from './dispatcher.ts';
import { evictOther, type Move } from './move.ts';
import { run } from './redis.ts';
import type { Dispatcher, Fault, Held, Setup, World } from './world.ts';

const sentBy = (me: Dispatcher): readonly Held[] => me.held.filter(({ state }) => state === 'sent');

/** Faults that can affect a dispatcher. */
function* dispatcherFaults(world: World, setup: Setup, index: number): Generator<[Fault, string, Move['run']]> {
  const me = world.dispatchers[index] as Dispatcher;
  const at = (change: (next: World, self: Dispatcher) => void) => (next: World) =>
    change(next, next.dispatchers[index] as Dispatcher);
  const first = me.socket[0];
  if (first !== undefined && first !== 'fence') {
    yield ['push lost', `a push to ${me.name} is lost`, at((_next, self) => (self.socket = self.socket.slice(1)))];
  }
  if (me.subscribed) {
    yield [
      'connection drops',
      `${me.name}'s connection of the pushes drops`,
      at((_next, self) => dropConnection(self)),
    ];
    if (me.deafSince === 0) {
      yield ['deaf', `nothing arrives at ${me.name} any more`, at((next, self) => (self.deafSince = next.now))];
    }
  }
  if (me.call !== null) {
    const ran = me.call.reply === undefined ? 'it may run yet' : 'it ran';
    yield [
      'answer lost',
      `${me.name} gets no answer to its exchange, ${ran}`,
      at((next, self) => loseAnswer(next, setup, self)),
    ];
  }
  if (me.state === 'up') yield ['stall', `${me.name} stalls`, at((_next, self) => (self.state = 'stalled'))];
  yield ['death', `${me.name} dies`, at((_next, self) => die(self))];
  const sent = sentBy(me).filter(({ lane }) => slotOf(lane) !== world.hangs);
  if (sent.length > 0) {
    yield [
      'death',
      `${me.name} dies, what it sent arrived`,
      at((next, self) => {
        for (const claim of sent) checkHit(next, claim);
        die(self);
      }),
    ];
  }
  for (const other of world.dispatchers) {
    if (other === me || me.state !== 'up' || !Object.values(world.part.claims).some(({ by }) => by === other.name))
      continue;
    yield [
      'suspicion',
      `${me.name} takes ${other.name} for dead`,
      at((next, self) => evictOther(next, setup, self, other.name)),
    ];
  }
}

/** Refs continue after the refs of the lost tail because their last digits start at a random number. */
function failOver(world: World, setup: Setup): void {
  if (world.replica === null) return;
  const { ms, seq, mark } = world.part.meta;
  const { part, gates } = world.replica;
  const refs = setup.defect === 'refs are used again' ? {} : { ms, seq: seq + 1 };
  world.part = { ...part, meta: { ...part.meta, ...refs, mark: mark + 1 } };
  world.gates = gates;
  world.history.failovers++;
  world.history.newest = {};
  for (const me of world.dispatchers) {
    if (me.state === 'dead') continue;
    loseAnswer(world, setup, me);
    dropConnection(me);
    me.held = me.held.map(held => ({ ...held, lapsedNow: true }));
    Object.assign(me, { seen: 0, reported: 0, doubts: true });
  }
  world.underWay = [];
  world.replica = { part: world.part, gates };
}

function* partFaults(world: World, setup: Setup): Generator<[Fault, string, Move['run']]> {
  if (world.replica !== null && world.replica.part !== world.part) {
    yield ['failover', 'a failover loses the tail', next => failOver(next, setup)];
  }
  if (world.skew === 0) yield ['clock goes back', 'the clock of Redis goes back', next => (next.skew = 2)];
  const slot = Object.keys(setup.caps)[0] ?? '';
  if (world.hangs === '') yield ['endpoint hangs', `the endpoint of ${slot} hangs`, next => (next.hangs = slot)];
  for (const [groupKey, { sent, left, repeats }] of Object.entries(world.senders)) {
    if (repeats || left === 0) continue;
    const id = groupKey + sent;
    yield [
      'send repeated',
      `${id} is accepted, its sender gets no answer`,
      next => {
        run(next, setup, { step: 'ingest', events: [{ id, groupKey, cost: 1 }] });
        next.senders[groupKey] = { sent, left, repeats: true };
      },
    ];
  }
}

/** Returns the faults that can happen now. */
export function* faults(world: World, setup: Setup): Generator<Move> {
  if (world.faultsLeft === 0) return;
  const all = [...partFaults(world, setup)];
  for (const [index, { state }] of world.dispatchers.entries()) {
    if (state !== 'dead') all.push(...dispatcherFaults(world, setup, index));
  }
  for (const [fault, label, happens] of all) {
    if (!setup.faults.includes(fault)) continue;
    yield {
      label,
      kind: 'fault',
      run: next => {
        next.faultsLeft--;
        happens(next);
      },
    };
  }
}
