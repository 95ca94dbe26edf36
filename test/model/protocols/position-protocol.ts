import { type Exploration, explore, type Transition } from './state-space.ts';

/**
 * Where positions of held subscriptions are kept, and which process moves them. `queue`, as the scripts do it: all in the queue's
 * slot, moved by the fenced script that moves the cursor; catch-up and main pass are serial. `inbox`: a position in the
 * inbox's slot. `concurrent`: as `queue`, but an owner runs catch-up and main pass at once. `lost is done`: an inbox
 * that did not answer is taken to have the batch.
 */
export type PositionVariant = 'queue' | 'inbox' | 'concurrent' | 'lost is done';

/** What a router has under way. */
interface Task {
  readonly at: 'read' | 'routed' | 'join';
  readonly from: number;
  readonly to: number;
  /** Of the main pass: the subscription is not behind. */
  readonly takesPart: boolean;
  readonly answer: 'OK' | 'PAUSED' | 'LOST' | 'SKIPPED';
}

interface Router {
  /** 0: owns nothing. */
  readonly epoch: number;
  readonly main: Task | null;
  readonly catchUp: Task | null;
}

interface State {
  readonly tail: number;
  readonly cursor: number;
  readonly epoch: number;
  /** In the queue's slot; null: not behind. */
  readonly behind: number | null;
  /** In the inbox's slot, in the variant that keeps it there. */
  readonly position: number | null;
  readonly live: boolean;
  readonly last: number;
  readonly inboxEpoch: number;
  readonly routed: readonly number[];
  readonly routers: readonly [Router, Router];
  readonly togglesLeft: number;
  readonly faultsLeft: number;
}

const EVENTS = 3;
const BATCH = 2;
const STOPPED: Router = { epoch: 0, main: null, catchUp: null };

type Redis = Omit<State, 'routers' | 'togglesLeft' | 'faultsLeft'>;

/** The script of the inbox's slot. */
function route<R extends Redis>(
  state: R,
  epoch: number,
  from: number,
  to: number,
  keepsPosition: boolean,
): [R, Task['answer'] | 'FENCED'] {
  if (epoch < state.inboxEpoch) return [state, 'FENCED'];
  const seen = { ...state, inboxEpoch: epoch };
  if (!state.live) return [seen, 'PAUSED'];
  const fresh: number[] = [];
  for (let event = Math.max(from, state.last) + 1; event <= to; event++) fresh.push(event);
  const next = { ...seen, routed: [...state.routed, ...fresh], last: fresh.length > 0 ? to : state.last };
  return [keepsPosition ? { ...next, position: to } : next, 'OK'];
}

function* routerSteps(state: State, which: 0 | 1, variant: PositionVariant): Generator<Transition<State>> {
  const name = which === 0 ? 'A' : 'B';
  const me = state.routers[which];
  const inInbox = variant === 'inbox';
  const become = (next: Router): State['routers'] =>
    which === 0 ? [next, state.routers[1]] : [state.routers[0], next];
  const go = (label: string, next: Partial<State>, router: Partial<Router> = {}): Transition<State> => [
    `${name} ${label}`,
    { ...state, ...next, routers: become({ ...me, ...router }) },
  ];
  const { faultsLeft } = state;
  if (faultsLeft > 0 && (me.epoch !== state.epoch || state.epoch === 0)) {
    yield go(
      'takes the queue over',
      { epoch: state.epoch + 1, faultsLeft: faultsLeft - (state.epoch > 0 ? 1 : 0) },
      { epoch: state.epoch + 1, main: null, catchUp: null },
    );
  }
  if (faultsLeft > 0 && (me.main ?? me.catchUp) !== null) yield go('crashes', { faultsLeft: faultsLeft - 1 }, STOPPED);
  if (me.epoch === 0) return;
  const owns = me.epoch === state.epoch;
  yield* mainSteps();
  yield* catchUpSteps();

  function* mainSteps(): Generator<Transition<State>> {
    const task = me.main;
    if (task === null) {
      if ((me.catchUp !== null && variant !== 'concurrent') || !owns) return;
      for (let to = state.cursor + 1; to <= Math.min(state.tail, state.cursor + BATCH); to++) {
        const takesPart = (inInbox ? state.position : state.behind) === null;
        const main: Task = { at: 'read', from: state.cursor, to, takesPart, answer: 'OK' };
        yield go(`reads (${state.cursor}, ${to}]${takesPart ? '' : ' without the one behind'}`, {}, { main });
      }
      return;
    }
    if (task.at === 'read') {
      if (!task.takesPart) return yield go('asks nobody', {}, { main: { ...task, at: 'routed', answer: 'SKIPPED' } });
      const [next, answer] = route(state, me.epoch, task.from, task.to, false);
      if (answer === 'FENCED') return yield go('is fenced', next, STOPPED);
      yield go(`routes (${task.from}, ${task.to}]: ${answer}`, next, { main: { ...task, at: 'routed', answer } });
      if (faultsLeft === 0 || inInbox) return;
      const lost: Partial<Router> = { main: { ...task, at: 'routed', answer: 'LOST' } };
      yield go(`routes (${task.from}, ${task.to}], the answer is lost`, { ...next, faultsLeft: faultsLeft - 1 }, lost);
      yield go(`routes (${task.from}, ${task.to}], which is lost`, { faultsLeft: faultsLeft - 1 }, lost);
      return;
    }
    if (!owns || state.cursor !== task.from) {
      return yield go('may not move the cursor', {}, { epoch: owns ? me.epoch : 0, main: null });
    }
    const missed = task.answer === 'PAUSED' || (task.answer === 'LOST' && variant !== 'lost is done');
    const staysBehind = !inInbox && missed;
    yield go(
      `moves the cursor to ${task.to}${staysBehind ? `, one stays behind at ${task.from}` : ''}`,
      { cursor: task.to, behind: staysBehind ? task.from : state.behind },
      { main: null },
    );
  }

  function* catchUpSteps(): Generator<Transition<State>> {
    const task = me.catchUp;
    if (task === null) {
      const position = inInbox ? state.position : state.behind;
      // Nothing of the queue's slot is written in the other variant, so no fence of it is met.
      if ((me.main !== null && variant !== 'concurrent') || position === null || !(owns || inInbox)) return;
      const read: Task = {
        at: 'read',
        from: position,
        to: Math.min(position + BATCH, state.cursor),
        takesPart: true,
        answer: 'OK',
      };
      if (position < state.cursor)
        yield go(`reads (${position}, ${read.to}] for the one behind`, {}, { catchUp: read });
      else if (inInbox) yield go('sees that the one behind is there', {}, { catchUp: { ...read, at: 'join' } });
      else yield go('joins the one behind', { behind: null });
      return;
    }
    if (task.at === 'read') {
      const [next, answer] = route(state, me.epoch, task.from, task.to, inInbox);
      if (answer !== 'OK') return yield go(`cannot catch up: ${answer}`, next, { catchUp: null });
      const after = inInbox ? null : { ...task, at: 'routed' as const };
      yield go(`catches up (${task.from}, ${task.to}]`, next, { catchUp: after });
      return;
    }
    if (task.at === 'join') {
      if (me.epoch < state.inboxEpoch) return yield go('is fenced', {}, STOPPED);
      const joins = state.position === task.from && state.live;
      yield go(joins ? 'joins' : 'does not join', joins ? { position: null, inboxEpoch: me.epoch } : {}, {
        catchUp: null,
      });
      return;
    }
    if (!owns || state.behind !== task.from) {
      return yield go('may not move the position', {}, { epoch: owns ? me.epoch : 0, catchUp: null });
    }
    const behind = task.to === state.cursor ? null : task.to;
    yield go(`moves the position to ${task.to}`, { behind }, { catchUp: null });
  }
}

function* steps(state: State, variant: PositionVariant): Generator<Transition<State>> {
  if (state.tail < EVENTS) yield [`event ${state.tail + 1} is accepted`, { ...state, tail: state.tail + 1 }];
  if (state.togglesLeft > 0) {
    const togglesLeft = state.togglesLeft - 1;
    const position = variant === 'inbox' && state.live ? (state.position ?? state.cursor) : state.position;
    yield [state.live ? 'block' : 'unblock', { ...state, live: !state.live, togglesLeft, position }];
  }
  yield* routerSteps(state, 0, variant);
  yield* routerSteps(state, 1, variant);
}

/** Un-blocked, and one router left that runs to the end: then every event has come once, in order. */
function wrongAtTheEnd(state: State, variant: PositionVariant): string | undefined {
  const inInbox = variant === 'inbox';
  if (state.routed.some((event, i) => i > 0 && event <= (state.routed[i - 1] as number))) {
    return `routed ${state.routed.join(', ')}`;
  }
  let end: Redis = { ...state, live: true };
  const epoch = Math.max(state.epoch, state.inboxEpoch) + 1;
  for (;;) {
    const position = inInbox ? end.position : end.behind;
    if (position !== null && position < end.cursor) {
      const to = Math.min(position + BATCH, end.cursor);
      [end] = route(end, epoch, position, to, inInbox);
      if (!inInbox) end = { ...end, behind: to };
    } else if (position !== null) {
      end = { ...end, position: null, behind: null };
    } else if (end.cursor < end.tail) {
      [end] = route(end, epoch, end.cursor, end.cursor + 1, false);
      end = { ...end, cursor: end.cursor + 1 };
    } else break;
  }
  const all = Array.from({ length: end.tail }, (_, i) => i + 1).join(', ');
  const routed = end.routed.join(', ');
  return routed === all ? undefined : `in the end routed ${routed || 'nothing'} of ${all}`;
}

/** Two routers, one of which may be deposed at any time, blocks and their ends, lost answers and crashes. */
export function explorePositions(variant: PositionVariant, faults: number, toggles: number): Exploration {
  const initial: State = {
    tail: 0,
    cursor: 0,
    epoch: 0,
    behind: null,
    position: null,
    live: true,
    last: 0,
    inboxEpoch: 0,
    routed: [],
    routers: [STOPPED, STOPPED],
    togglesLeft: toggles,
    faultsLeft: faults,
  };
  return explore(
    initial,
    state => steps(state, variant),
    state => wrongAtTheEnd(state, variant),
  );
}
