import { hasLapsed } from '../part/evict.ts';
import type { GateCall } from '../part/gate.ts';
import { DEAD, inOrder, slotOf, tailOf } from '../part/part.ts';
import {
  answerAttempt,
  askMine,
  mustExchange,
  passTime,
  read,
  readAnswer,
  resubscribe,
  sendExchange,
  wake,
} from './dispatcher.ts';
import { faults } from './faults.ts';
import { evictOther, type Move } from './move.ts';
import { run } from './redis.ts';
import { exchange } from './run-exchange.ts';
import { type Dispatcher, type GateOp, newDispatcher, type Setup, type World } from './world.ts';

type Self = (next: World, me: Dispatcher) => void;

/**
 * Returns the dispatchers whose claims can be taken: they have not written anything for too long, either everywhere or
 * in this part.
 */
function* lapsedOthers(world: World, setup: Setup, me: Dispatcher): Generator<string> {
  const context = { now: world.now - world.skew, defect: setup.defect };
  const awake = me.held.length > 0 || world.now - me.renewed <= 1;
  for (const other of world.dispatchers) {
    if (other.name === me.name) continue;
    const silent = other.state !== 'up' && world.now - other.up >= DEAD;
    const lapsed = Object.values(world.part.claims).some(
      claim => claim.by === other.name && hasLapsed(world.part, claim, { ...context, defect: undefined }),
    );
    if ((silent && !me.gone.includes(other.name)) || (lapsed && (awake || silent))) yield other.name;
  }
}

/** Returns the required moves of a running dispatcher. */
function* workOf(world: World, setup: Setup, index: number): Generator<Move> {
  const me = world.dispatchers[index] as Dispatcher;
  const { name, call } = me;
  const move = (label: string, self: Self): Move => ({
    label: `${name} ${label}`,
    kind: 'urgent',
    run: next => self(next, next.dispatchers[index] as Dispatcher),
  });
  if (!me.subscribed) yield move('subscribes again', (_next, self) => resubscribe(self));
  if (me.socket.length > 0 && me.deafSince === 0) {
    const what = me.socket[0] === 'fence' ? 'the fence' : me.socket[0]?.claims.length ? 'a push' : 'that there is work';
    yield move(`reads ${what}`, (next, self) => read(next, setup, self));
  }
  if (call?.reply !== undefined) {
    const { claims, taken } = call.reply;
    const got = taken ? `${claims.length > 0 ? claims.map(c => c.lane).join() : 'nothing'}` : 'that it was late';
    yield move(`is answered: ${got}`, (next, self) => readAnswer(next, setup, self));
  }
  const beside = setup.defect === 'list beside an exchange';
  const unfenced = me.mine === null || beside;
  if (call === null && unfenced && mustExchange(world, me)) {
    const ended = me.ended.map(({ lane, outcome }) => `${lane} ${outcome}`).join();
    yield move(`exchanges${ended && `: ${ended}`}`, (next, self) => sendExchange(next, setup, self));
  }
  if (me.doubts && me.subscribed && me.mine === null && (call === null || beside)) {
    yield move('asks for its claims', (next, self) => askMine(next, setup, self));
  }
  for (const other of lapsedOthers(world, setup, me)) {
    yield move(`evicts ${other}`, (next, self) => evictOther(next, setup, self, other));
  }
  const home = world.dispatchers.find(({ state }) => state === 'up') === me || setup.homes === 2;
  if (!me.advances || !home) return;
  if (setup.defect === 'advance from a stale position' && me.positions === null) {
    return yield move('reads the positions', (next, self) => (self.positions = next.part.pos));
  }
  yield move('advances', (next, self) => {
    const from = self.positions ?? undefined;
    const join = self.arrived;
    const { more, arrived } = run(next, setup, { step: 'advance', furthest: self.furthest, from, join });
    self.positions = null;
    self.arrived = setup.defect === 'live in a later step' ? arrived : [];
    self.advances = more;
    self.furthest = Object.keys(next.part.pos).length > 1 && !self.furthest;
  });
}

function* endpoints(world: World, setup: Setup): Generator<Move> {
  for (const [index, { held, name }] of world.dispatchers.entries()) {
    for (const claim of held) {
      if (claim.state !== 'sent' || slotOf(claim.lane) === world.hangs) continue;
      const at = (delivered: boolean) => (next: World) =>
        answerAttempt(next, setup, next.dispatchers[index] as Dispatcher, claim, delivered);
      yield { label: `${claim.lane} answers 200 to ${name}`, kind: 'endpoint', run: at(true) };
      if (world.failuresLeft === 0 || world.dispatchers[index]?.state !== 'up') continue;
      const fails = (next: World) => {
        next.failuresLeft--;
        at(false)(next);
      };
      yield { label: `${claim.lane} answers 500 to ${name}`, kind: 'free', run: fails };
    }
  }
}

function* senders(world: World, setup: Setup): Generator<Move> {
  const ready = Object.entries(world.senders).filter(([, { left, repeats }]) => left > 0 || repeats);
  const send = (entries: typeof ready): Move => ({
    label: `${entries.map(([groupKey, { sent }]) => groupKey + sent).join(' and ')} is sent`,
    kind: 'sender',
    run: next => {
      const events = entries.map(([groupKey, { sent }]) => ({ id: groupKey + sent, groupKey, cost: 1 }));
      const { answers } = run(next, setup, { step: 'ingest', events });
      for (const [groupKey, { sent, left }] of entries.slice(0, answers.length)) {
        next.senders[groupKey] = { sent: sent + 1, left: left - 1, repeats: false };
      }
    },
  });
  for (const entry of ready) yield send([entry]);
  if (setup.batches === true && ready.length > 1) yield send(ready);
  const { hold, granted } = world.part.meta;
  if (hold === 'tokens') {
    yield {
      label: 'tokens are granted',
      kind: 'sender',
      run: next => run(next, setup, { step: 'grant', total: granted + 2 }),
    };
  }
}

function applyGate(next: World, setup: Setup, op: GateOp, slot: string, groupKey: string): void {
  const { open, active, closedAt, skipped } = next.gates;
  const lane = slot + groupKey;
  const tail = tailOf(next.part);
  if (op === 'pause') {
    next.gates = {
      ...next.gates,
      open: { ...open, [slot]: false },
      closedAt: inOrder({ ...closedAt, [slot]: next.now }),
    };
  } else if (op === 'deactivate') {
    const { [lane]: _, ...rest } = active;
    next.gates = { ...next.gates, active: rest, closedAt: inOrder({ ...closedAt, [lane]: next.now }) };
  } else if (op === 'activate') next.gates = { ...next.gates, active: inOrder({ ...active, [lane]: tail }) };
  else {
    const skips = op === 'skip' ? inOrder({ ...skipped, [slot]: tail }) : skipped;
    next.gates = { ...next.gates, open: { ...open, [slot]: true }, skipped: skips };
  }
  const call = { step: 'gate', op, slot, groupKey } as GateCall;
  run(next, setup, call);
}

function* gateMoves(world: World, setup: Setup): Generator<Move> {
  if (world.gatesLeft === 0) return;
  const slots = Object.keys(setup.caps);
  const groupKeys = Object.keys(setup.events);
  const [onlySlot, onlyKey] = setup.gated ?? [];
  for (const slot of onlySlot === undefined ? slots : [onlySlot]) {
    for (const groupKey of onlyKey === undefined ? groupKeys : [onlyKey]) {
      const opened = world.gates.open[slot] === true;
      const activated = world.gates.active[slot + groupKey] !== undefined;
      for (const op of setup.gates ?? []) {
        const makesSense = {
          pause: opened,
          resume: !opened,
          skip: !opened,
          activate: !activated,
          deactivate: activated,
        };
        const byKey = op === 'activate' || op === 'deactivate';
        if (!makesSense[op] || (!byKey && groupKey !== (onlyKey ?? groupKeys[0]))) continue;
        yield {
          label: `${op} ${slot}${byKey ? groupKey : ''}`,
          kind: 'gate',
          run: next => {
            next.gatesLeft--;
            applyGate(next, setup, op, slot, groupKey);
          },
        };
      }
    }
  }
}

/** Returns moves that can happen at any time, but are not required. */
function* free(world: World, setup: Setup): Generator<Move> {
  for (const [index, { state, name }] of world.dispatchers.entries()) {
    if (state !== 'stalled') continue;
    const wakes = (next: World) => {
      for (const other of next.dispatchers) other.gone = other.gone.filter(gone => gone !== name);
      wake(next, setup, next.dispatchers[index] as Dispatcher);
    };
    yield { label: `${name} wakes`, kind: 'free', run: wakes };
  }
  const down = world.dispatchers.every(({ state }) => state !== 'up');
  if (down && world.dispatchers.length < 9) {
    const name = `z${world.dispatchers.length}`;
    const starts = (next: World) => (next.dispatchers = [...next.dispatchers, newDispatcher(name, next.now)]);
    yield { label: `${name} starts`, kind: 'free', run: starts };
  }
  for (const [i, call] of world.underWay.entries()) {
    const late = (next: World) => {
      next.underWay = next.underWay.filter((_, other) => other !== i);
      run(next, setup, call);
    };
    yield { label: `Redis reads the exchange that ${call.by} gave up`, kind: 'free', run: late };
  }
  if (setup.faults.includes('failover') && world.faultsLeft > 0 && world.replica?.part !== world.part) {
    const copies = (next: World) => (next.replica = { part: next.part, gates: next.gates });
    yield { label: 'the replica has all', kind: 'free', run: copies };
  }
}

const passes = (setup: Setup): Move => ({
  label: 'a tick passes',
  kind: 'tick',
  run: next => {
    next.now++;
    next.ticksLeft = Math.max(0, next.ticksLeft - 1);
    for (const me of next.dispatchers) if (me.state === 'up') passTime(next, setup, me);
  },
});

/** Returns the required moves of running processes. No time passes until they have been made. */
export function urgentMoves(world: World, setup: Setup): Move[] {
  const moves: Move[] = [];
  for (const [index, { state, call }] of world.dispatchers.entries()) {
    if (call !== null && call.reply === undefined && state !== 'dead') moves.push(exchange(setup, index, call.sent));
    if (state === 'up') moves.push(...workOf(world, setup, index));
  }
  return moves;
}

/**
 * Returns the next move without further faults. Suspended processes remain suspended, and closed gates remain closed.
 */
export function usualMove(world: World, setup: Setup): Move {
  const [urgent] = urgentMoves(world, setup);
  if (urgent !== undefined) return urgent;
  const [answers] = [...endpoints(world, setup)].filter(({ kind }) => kind === 'endpoint');
  if (answers !== undefined) return answers;
  const down = world.dispatchers.every(({ state }) => state !== 'up');
  const starts = down ? [...free(world, setup)].find(({ label }) => label.endsWith('starts')) : undefined;
  const [sends] = senders(world, setup);
  return starts ?? sends ?? passes(setup);
}

/** Returns all possible moves, starting with the usual move. */
export function movesOf(world: World, setup: Setup): Move[] {
  if (world.wrong !== '') return [];
  const urgent = urgentMoves(world, setup);
  const moves = [...urgent, ...endpoints(world, setup), ...senders(world, setup), ...free(world, setup)];
  if (urgent.length === 0 && world.ticksLeft > 0) moves.push(passes(setup));
  const usual = usualMove(world, setup).label;
  const [first, rest] = [moves.filter(({ label }) => label === usual), moves.filter(({ label }) => label !== usual)];
  const unusual = world.preemptionsLeft > 0 ? rest.map(preempts) : [];
  return [...first, ...unusual, ...faults(world, setup), ...gateMoves(world, setup)];
}

const preempts = ({ run: runs, ...move }: Move): Move => ({
  ...move,
  run: next => {
    next.preemptionsLeft--;
    runs(next);
  },
});
