import { stringify } from 'yaml';
import type { GeneratedFile } from '../generate.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import { labelsOf } from '../manifests/metadata.ts';
import { select } from '../promql.ts';
import type { AlertRule } from './alert-rule.ts';
import { ALERT_GROUPS, ALERT_RULES } from './alert-rules.ts';

const ORIGIN = '# Generated from tools/generate/alerts by tools/generate/generate.ts. Change it there.\n';

/** Matchers for the rules of the chart, which are replaced with the matchers of the release. */
export const CHART_MATCHERS = 'namespace="sluice-system",job="sluice-system/sluice"';

/** Returns a rule in the format of Prometheus. */
export function renderRule({ name, expr, for: duration, severity, summary, impact }: AlertRule): object {
  return {
    alert: name,
    expr,
    for: duration,
    labels: { severity },
    annotations: {
      summary,
      description: impact,
      runbook_url: `https://sluice.dev/runbooks#${name.toLowerCase()}`,
    },
  };
}

const chartRule = (rule: AlertRule): object => renderRule({ ...rule, expr: select(rule.expr, CHART_MATCHERS) });

/**
 * Renders the alerts as a Prometheus rule file, and as an object for the Prometheus Operator. Both cover all
 * installations. The rules of the chart only cover a single installation.
 */
export function renderAlerts(): GeneratedFile[] {
  const groupsOf = (render: (rule: AlertRule) => object) =>
    ALERT_GROUPS.map(({ name, rules }) => ({ name, rules: rules.map(render) }));
  const groups = groupsOf(renderRule);
  const object = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'sluice', namespace: DEFAULT_INSTALLATION.namespace, labels: labelsOf(DEFAULT_INSTALLATION) },
    spec: { groups },
  };
  return [
    { path: 'config/alerts/sluice.yaml', text: ORIGIN + write({ groups }) },
    { path: 'config/alerts/prometheus-rule.yaml', text: ORIGIN + write(object) },
    { path: 'charts/sluice/files/alerts.yaml', text: ORIGIN + write({ groups: groupsOf(chartRule) }) },
    // The runbooks of this release, for users who can't access the URL.
    { path: 'charts/sluice/files/runbooks.md', text: `${renderRunbooks()}\n` },
  ];
}

function write(value: object): string {
  return stringify(value, { lineWidth: 110, aliasDuplicateObjects: false });
}

/** Renders docs/runbooks.md: one section for each alert. */
export function renderRunbooks(): string {
  return [
    '# Runbooks',
    'Runbooks for all alerts in `config/alerts`. The rules are available in two formats: `sluice.yaml` for Prometheus, and `prometheus-rule.yaml` for the Prometheus Operator, which you can apply using `kubectl apply -f config/alerts/prometheus-rule.yaml`. Both files cover all installations monitored by Prometheus. The labels `namespace` and `job` identify an installation. If you are not using the PodMonitor, make sure that all processes of an installation use the same `job` label. The PrometheusRule created by the Helm chart only selects its own installation. The `runbook_url` points to this page on https://sluice.dev and should be replaced if you serve the pages (`make docs`) from another address.',
    'Each alert has a severity: **critical** if events are currently being rejected, delayed, or at risk, **warning** if this is about to happen, and **info** if a producer or partner needs to take action.',
    ...ALERT_RULES.map(renderRunbook),
  ].join('\n\n');
}

function renderRunbook({ name, expr, for: duration, severity, summary, impact, steps }: AlertRule): string {
  const since =
    duration === '0m'
      ? 'fires immediately'
      : `fires after ${duration.replace('m', ' minutes').replace(/^1 minutes/, '1 minute')}`;
  return [
    `## ${name}`,
    `**${severity}**, ${since}. ${summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`<$1>`')}`,
    `**Impact:** ${impact}`,
    '**Steps**',
    steps.map(step => `- ${step}`).join('\n'),
    '**Query**',
    `\`\`\`promql\n${expr}\n\`\`\``,
  ].join('\n\n');
}
