import { type Exploration, explore, type Transition } from './state-space.ts';

/**
 * How a hint is raised or removed. `token`, as the scripts do it: by compare-and-set on a unique token. `score`: on the
 * time that the pick set, which two picks of one millisecond share. `unconditional`: whatever happened meanwhile.
 */
export type HintVariant = 'token' | 'score' | 'unconditional';

type Dispatcher =
  | { readonly at: 'idle' }
  /** Picked the hint; claims next. */
  | { readonly at: 'picked'; readonly stamp: number }
  /** Has all the work that was there; settles the hint next. */
  | { readonly at: 'claimed'; readonly stamp: number };

interface State {
  /** Events in the inbox that nobody has claimed. */
  readonly work: number;
  /** undefined: none; `now`: lowered; a number: leased by the pick with this stamp. */
  readonly hint: 'none' | 'now' | number;
  readonly dispatchers: readonly [Dispatcher, Dispatcher];
  /** The router appended, and has not lowered the hint yet. */
  readonly appended: boolean;
  readonly appendsLeft: number;
  readonly crashesLeft: number;
  readonly picks: number;
}

const MOST_PICKS = 8;
const IDLE: Dispatcher = { at: 'idle' };

function* dispatcherSteps(state: State, which: 0 | 1, variant: HintVariant): Generator<Transition<State>> {
  const name = which === 0 ? 'A' : 'B';
  const me = state.dispatchers[which];
  const become = (next: Dispatcher): State['dispatchers'] =>
    which === 0 ? [next, state.dispatchers[1]] : [state.dispatchers[0], next];
  if (me.at === 'idle') {
    // Lowered, or leased by somebody whose lease has passed.
    if (state.hint === 'none' || state.picks >= MOST_PICKS) return;
    const picks = state.picks + 1;
    const stamp = variant === 'token' ? picks : 1;
    yield [`${name} picks`, { ...state, picks, hint: stamp, dispatchers: become({ at: 'picked', stamp }) }];
  } else if (me.at === 'picked') {
    const claimed = become({ at: 'claimed', stamp: me.stamp });
    yield [`${name} claims all`, { ...state, work: 0, dispatchers: claimed }];
    if (state.crashesLeft > 0) {
      yield [`${name} crashes`, { ...state, crashesLeft: state.crashesLeft - 1, dispatchers: become(IDLE) }];
    }
  } else if (variant === 'unconditional' || state.hint === me.stamp) {
    yield [`${name} removes the hint`, { ...state, hint: 'none', dispatchers: become(IDLE) }];
  } else {
    yield [`${name} keeps the hint`, { ...state, dispatchers: become(IDLE) }];
  }
}

function* steps(state: State, variant: HintVariant): Generator<Transition<State>> {
  if (!state.appended && state.appendsLeft > 0) {
    const after = { ...state, work: state.work + 1, appended: true, appendsLeft: state.appendsLeft - 1 };
    yield ['the router appends', after];
  }
  if (state.appended) yield ['the router lowers the hint', { ...state, hint: 'now', appended: false }];
  yield* dispatcherSteps(state, 0, variant);
  yield* dispatcherSteps(state, 1, variant);
}

/** Work without a hint, and without a dispatcher that is about to claim it. */
function lostWakeUp({ work, hint, appended, dispatchers }: State): string | undefined {
  const seen = hint !== 'none' || appended || dispatchers.some(({ at }) => at === 'picked');
  return work > 0 && !seen ? `${work} in the inbox, and no hint` : undefined;
}

/** Two dispatchers, one router with three events, two crashes: every interleaving. */
export function exploreHints(variant: HintVariant): Exploration {
  const initial: State = {
    work: 0,
    hint: 'none',
    dispatchers: [IDLE, IDLE],
    appended: false,
    appendsLeft: 3,
    crashesLeft: 2,
    picks: 0,
  };
  return explore(initial, state => steps(state, variant), lostWakeUp);
}
