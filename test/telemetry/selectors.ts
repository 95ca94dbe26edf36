import type { Series } from '../support/prometheus/exposition.ts';

const OURS =
  /\b((?:sluice|workqueue|controller_runtime|leader_election|rest_client|process|nodejs)_\w+)(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g;
const GROUPING = /\b(?:by|on)\s*\(([^)]*)\)/g;
/** The labels that Prometheus adds to every series scraped from a pod. */
const ADDED = ['namespace', 'instance', 'job', 'le'];

/**
 * Returns the metrics, labels, and label values that a PromQL expression requires, but which are missing from `series`.
 */
export function missingFrom(series: readonly Series[], expression: string): string[] {
  const missing: string[] = [];
  const labelsOfAll = new Set(ADDED);
  for (const [, name = '', matchers = ''] of expression.matchAll(OURS)) {
    const found = series.filter(each => each.name === name);
    if (found.length === 0) missing.push(name);
    for (const { labels } of found) for (const label of Object.keys(labels)) labelsOfAll.add(label);
    for (const [, label = '', operator, value] of matchers.matchAll(MATCHER)) {
      const has = found.some(({ labels }) => label in labels && (operator !== '=' || labels[label] === value));
      if (!has) missing.push(`${name}{${label}${operator}"${value}"}`);
    }
  }
  for (const [, list = ''] of expression.matchAll(GROUPING)) {
    for (const label of list.split(',').map(each => each.trim())) {
      if (label !== '' && !labelsOfAll.has(label)) missing.push(`by (${label})`);
    }
  }
  return missing;
}
