/**
 * A calculation that consists of small pieces, one per `yield`. The caller may run other work between two pieces. In
 * order to get the same result, it must not depend on anything that changes in between.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all pieces at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Maps each of the items in a separate piece. */
export function* mapSteps<T, R>(items: Iterable<T>, map: (item: T) => R): Steps<R[]> {
  const mapped: R[] = [];
  for (const item of items) {
    mapped.push(map(item));
    yield;
  }
  return mapped;
}
