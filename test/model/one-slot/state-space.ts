/** One thing that may happen in a state, as a story calls it, and the state that follows. */
export type Transition<S> = readonly [label: string, next: S];

export interface Exploration {
  readonly states: number;
  /** The shortest way to a state that must not be, with what is wrong there; undefined when there is none. */
  readonly counterexample: { readonly story: readonly string[]; readonly wrong: string } | undefined;
}

/**
 * Walks through every state that can be reached, breadth first, until one is wrong: what a model says of all
 * interleavings, and not only of those that a run happens to meet. States are plain data; `keyOf` tells them apart.
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
    // Not needed again: large state spaces would not fit.
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
