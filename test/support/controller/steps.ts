import type { Steps } from '../../../src/core/routing/steps.ts';

/** A calculation in two pieces that only returns a value. */
export function* stepsOf<T>(value: T): Steps<T> {
  yield;
  return value;
}
