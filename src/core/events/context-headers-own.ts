import { CONTEXT_HEADER_DEFAULTS } from '../../api/context-headers.ts';
import { nearestName } from '../problems/nearest-name.ts';
import type { ProblemError } from '../problems/problem.ts';

const OWN_PREFIX = 'x-sluice-';
/** The maximum number of errors for headers in a single response. */
const MOST_NAMED = 10;

/** The `x-sluice-` request headers that are accepted by every stream. */
const OWN_HEADERS: readonly string[] = Object.values(CONTEXT_HEADER_DEFAULTS)
  .flat()
  .filter(name => name.startsWith(OWN_PREFIX));

/**
 * Returns the `x-sluice-` headers accepted by a stream, which are the default headers and the headers in its
 * `contextHeaders`.
 */
export function ownHeadersOf(listed: readonly string[]): ReadonlySet<string> {
  return new Set([...OWN_HEADERS, ...listed.filter(name => name.startsWith(OWN_PREFIX))]);
}

/**
 * Returns an error for each unknown `x-sluice-` header. If we didn't check this, an event with a misspelled
 * `x-sluice-group-key` header would be accepted without a group key. Such an event would never be delivered.
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
