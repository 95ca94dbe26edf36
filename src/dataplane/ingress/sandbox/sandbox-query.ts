import { SandboxQuery } from '../../../api/sandbox.ts';
import type { Simulation } from '../../../core/delivery/simulation.ts';
import { nearestName } from '../../../core/problems/nearest-name.ts';
import type { ProblemError } from '../../../core/problems/problem.ts';
import { findSandboxParameter } from '../sandbox-parameters.ts';

const LONG_NAMES = ['sb_fail_code', 'sb_fail_count'];
/** Matches names that are similar to those of sandbox parameters, and not used for anything else. */
const SIMILAR = /^(sb[-_]|sbfail|run[-_]?id)/i;

/** Query parameters of a sandbox request. */
export interface SandboxRequest {
  readonly simulation: Simulation;
  /** Optional. A new run is created if unset. */
  readonly runId: string | undefined;
}

/**
 * Reads the sandbox parameters from a request target. If they are invalid, this returns the errors. The name of a
 * parameter must be spelled exactly, so variants such as `RUNID`, ` runId`, or `sb_fail_codes` will be refused: if we
 * ignored them, the event might be simulated differently from what the sender expects. All other parameters are
 * ignored, as in production.
 */
export function readSandboxQuery(target: string): SandboxRequest | { readonly errors: readonly ProblemError[] } {
  const start = target.search(/[?#]/);
  const values = new Map<string, string>();
  const errors: ProblemError[] = [];
  for (const pair of start < 0 ? [] : target.slice(start + 1).split('&')) {
    const parameter = findSandboxParameter(`?${pair}`);
    const [name, value = ''] = [...new URLSearchParams(pair)][0] ?? [];
    if (name === undefined) continue;
    if (parameter === undefined) {
      if (isMisspelled(name)) errors.push(unknownParameter(name, Object.keys(SandboxQuery.shape)));
    } else if (name !== parameter) errors.push({ parameter, detail: `must be spelled ${parameter}` });
    else if (values.has(name)) errors.push({ parameter, detail: 'may be given once' });
    else values.set(name, value);
  }
  const parsed = SandboxQuery.safeParse(Object.fromEntries(values));
  for (const issue of parsed.error?.issues ?? [])
    errors.push({ parameter: String(issue.path[0]), detail: issue.message });
  if (errors.length > 0 || !parsed.success) return { errors };
  const { sb_fail_code: failCode, sb_fail_count: failCount, runId } = parsed.data;
  return {
    simulation: { ...(failCode === undefined ? {} : { failCode }), ...(failCount === undefined ? {} : { failCount }) },
    runId,
  };
}

function isMisspelled(name: string): boolean {
  return SIMILAR.test(name) || nearestName(name.toLowerCase(), LONG_NAMES) !== undefined;
}

/** Returns the error to use for a query parameter that is not included in `known`. */
export function unknownParameter(name: string, known: readonly string[]): ProblemError {
  const meant = nearestName(name.toLowerCase(), known);
  const hint = meant === undefined ? '' : `did you mean ${meant}? `;
  return {
    parameter: name.slice(0, 64),
    detail: `is not a parameter of this route; ${hint}known: ${known.join(', ')}`,
  };
}
