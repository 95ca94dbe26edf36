/** A violation of an invariant (by its number in the list). */
export class Violation extends Error {
  override readonly name = 'Violation';

  constructor(invariant: number, what: string) {
    super(`invariant ${invariant}: ${what}`);
  }
}

export function hold(invariant: number, holds: boolean, what: () => string): asserts holds {
  if (!holds) throw new Violation(invariant, what());
}
