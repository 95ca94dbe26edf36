/** Texts, and metrics that Sluice exposes, with what follows the brace of a selector. */
const TEXT_OR_METRIC =
  /"[^"]*"|\b(?:sluice|workqueue|controller_runtime|leader_election|rest_client|process|nodejs)_\w+\b(?:\{(?=([^}]?)))?/g;

/** Returns the PromQL expression with more matchers in the selectors of all metrics that Sluice exposes. */
export function select(expression: string, matchers: string): string {
  return expression.replaceAll(TEXT_OR_METRIC, (found, next: string | undefined) => {
    if (found.startsWith('"')) return found;
    if (next === undefined) return `${found}{${matchers}}`;
    return `${found}${matchers}${next === '' ? '' : ','}`;
  });
}
