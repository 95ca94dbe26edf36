import { CONTEXT_HEADER_DEFAULTS } from '../../api/context-headers.ts';
import { nearestName } from '../problems/nearest-name.ts';
import type { ProblemError } from '../problems/problem.ts';

const OWN_PREFIX = 'x-sluice-';
/** Maximum number of header faults in an answer; more would be of the same kind. */
const MOST_NAMED = 10;

/** The `x-sluice-` request headers that every stream accepts. */
const OWN_HEADERS: readonly string[] = Object.values(CONTEXT_HEADER_DEFAULTS)
  .flat()
  .filter(name => name.startsWith(OWN_PREFIX));

/** Returns the `x-sluice-` headers that a stream accepts: the default ones, and those of its `contextHeaders`. */
export function ownHeadersOf(listed: readonly string[]): ReadonlySet<string> {
  return new Set([...OWN_HEADERS, ...listed.filter(name => name.startsWith(OWN_PREFIX))]);
}

/**
 * Returns a fault for each unknown `x-sluice-` header. A misspelt `x-sluice-group-key` would otherwise be accepted as
 * an event without a group key, which no partner gets.
 */
export function faultsOfOwnHeaders(
  known: ReadonlySet<string>,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): ProblemError[] {
  const errors: ProblemError[] = [];
  for (const name in headers) {
    if (!name.startsWith(OWN_PREFIX) || known.has(name)) continue;
    if (errors.length === MOST_NAMED) break;
    const meant = nearestName(name, [...known]);
    const hint = meant === undefined ? '' : `did you mean ${meant}? `;
    errors.push({ header: name, detail: `is not a header of this stream; ${hint}known: ${[...known].join(', ')}` });
  }
  return errors;
}
