import type { ProblemError } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

/** The facts of an answer beside its problem code. */
export interface RefusalFacts {
  /** What to change in this request. Default: the code's remedy. Never a secret or an e-mail address. */
  readonly detail?: string;
  readonly errors?: readonly ProblemError[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A refused request. Thrown below a route, answered as a problem document (RFC 9457). */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: ProblemCode;
  readonly facts: RefusalFacts;

  constructor(code: ProblemCode, facts: RefusalFacts | string = {}) {
    const given = typeof facts === 'string' ? { detail: facts } : facts;
    super(given.detail ?? code, { cause: given.cause });
    this.code = code;
    this.facts = given;
  }
}

/** Returns a refusal with a fact followed by the code's remedy. */
export function refuseBecause(code: ProblemCode, fact: string): Refusal {
  return new Refusal(code, `${fact} ${PROBLEMS[code].remedy}`);
}
