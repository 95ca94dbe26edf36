import type { ProblemError } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

/** What an answer says beyond the code of its problem. */
export interface RefusalFacts {
  /** What to change in this very request. Absent: the code's own remedy. Never a secret, never an e-mail address. */
  readonly detail?: string;
  readonly errors?: readonly ProblemError[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A request that is refused: thrown anywhere below a route, answered as a problem document (RFC 9457). */
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

/** A refusal that tells a fact, and then what the code says to do about it. */
export function refuseBecause(code: ProblemCode, fact: string): Refusal {
  return new Refusal(code, `${fact} ${PROBLEMS[code].remedy}`);
}
