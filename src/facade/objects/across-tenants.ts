import type { ProblemCode } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';

/**
 * Details for problems which would otherwise include information about the object: its managers, conditions, or the
 * policies of its namespace.
 */
const GENERIC: Readonly<Partial<Record<ProblemCode, string>>> = {
  field_managed: 'The producer manages the Integration with another tool. Ask the producer to change it there.',
  refused_by_policy: 'A policy of the cluster rejected the change to the Integration. Contact the operator.',
  not_reconcilable:
    'Your answer has been stored, but the Integration has an error. Ask the producer to check its Ready condition.',
  not_in_force: 'Your answer has been stored, but it was not in force after 5 s. Try again.',
};

/**
 * Problems that would incorrectly attribute an error of the object to the request, including the problem to return
 * instead. The request does not include anything contained in the object.
 */
const INSTEAD: Readonly<Partial<Record<ProblemCode, ProblemCode>>> = { invalid_request: 'refused_by_policy' };

/**
 * Changes an object that belongs to the other party. The caller receives the same problem codes as for their own
 * objects, but no information about the object or its namespace.
 *
 * @throws Refusal
 */
export async function acrossTenants<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const code = INSTEAD[error.code] ?? error.code;
    const detail = GENERIC[code];
    if (detail === undefined) throw error;
    throw new Refusal(code, { detail, cause: error.facts.cause });
  }
}
