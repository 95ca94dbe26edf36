import type { ProblemError } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

/** Additional data for a problem response. */
export interface RefusalFacts {
  /**
   * Describes how to correct this particular request. Defaults to the remedy for the code. Must not contain secrets or
   * e-mail addresses.
   */
  readonly detail?: string;
  readonly errors?: readonly ProblemError[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** Refusal is thrown when a request is refused. The response is a problem document (RFC 9457). */
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

/** Returns a refusal with a detail made up of the given fact and the remedy for the code. */
export function refuseBecause(code: ProblemCode, fact: string): Refusal {
  return new Refusal(code, `${fact} ${PROBLEMS[code].remedy}`);
}
