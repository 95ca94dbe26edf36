import type { ProblemError } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

/** Additional data for the answer of a problem. */
export interface RefusalFacts {
  /**
   * A detail that describes how to correct this request. Defaults to the remedy of the code. It must not contain a
   * secret or an e-mail address.
   */
  readonly detail?: string;
  readonly errors?: readonly ProblemError[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** Refusal is thrown when a request is refused. It is answered with a problem document (RFC 9457). */
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

/** Returns a refusal whose detail is the given fact followed by the remedy of the code. */
export function refuseBecause(code: ProblemCode, fact: string): Refusal {
  return new Refusal(code, `${fact} ${PROBLEMS[code].remedy}`);
}
