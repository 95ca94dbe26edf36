/** A possible move in a state, including its name in a story, and the resulting state. */
export type Transition<S> = readonly [label: string, next: S];

export interface Exploration {
  readonly states: number;
  /** The shortest path to an invalid state, including the violation, or undefined if there is none. */
  readonly counterexample: { readonly story: readonly string[]; readonly wrong: string } | undefined;
}

/**
 * Visits all reachable states, breadth first, until an invalid state is found. This covers all interleavings of a
 * model, instead of only those that happen to occur in a run. States are plain data, which are distinguished by
 * `keyOf`.
 */
export function explore<S>(
  initial: S,
  transitions: (state: S) => Iterable<Transition<S>>,
  wrongIn: (state: S) => string | undefined,
  keyOf: (state: S) => string = JSON.stringify,
): Exploration {
  const parents = new Map<string, readonly [from: string, label: string] | undefined>();
  const queue: (S | undefined)[] = [initial];
  parents.set(keyOf(initial), undefined);
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] as S;
    // This is not needed anymore. Otherwise, large state spaces would not fit into memory.
    queue[at] = undefined;
    const key = keyOf(state);
    const wrong = wrongIn(state);
    if (wrong !== undefined) {
      const story: string[] = [];
      for (let step = parents.get(key); step !== undefined; step = parents.get(step[0])) story.unshift(step[1]);
      return { states: parents.size, counterexample: { story, wrong } };
    }
    for (const [label, next] of transitions(state)) {
      const nextKey = keyOf(next);
      if (parents.has(nextKey)) continue;
      parents.set(nextKey, [key, label]);
      queue.push(next);
    }
  }
  return { states: parents.size, counterexample: undefined };
}
