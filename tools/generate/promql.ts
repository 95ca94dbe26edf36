/** Matches texts, metrics of Sluice, and `up{}`, including the part after the brace of a selector. */
const TEXT_OR_METRIC =
  /"[^"]*"|\b(?:up(?=\{)|(?:sluice|workqueue|controller_runtime|leader_election|rest_client|process|nodejs)_\w+)\b(?:\{(?=([^}]?)))?/g;

/** Returns the PromQL expression with additional matchers in the selectors of all Sluice metrics. */
export function select(expression: string, matchers: string): string {
  return expression.replaceAll(TEXT_OR_METRIC, (found, next: string | undefined) => {
    if (found.startsWith('"')) return found;
    if (next === undefined) return `${found}{${matchers}}`;
    return `${found}${matchers}${next === '' ? '' : ','}`;
  });
}
