import { stringify } from 'yaml';
import type { GeneratedFile } from '../generate.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import { labelsOf } from '../manifests/metadata.ts';
import { table } from '../markdown.ts';
import { select } from '../promql.ts';
import type { AlertRule } from './alert-rule.ts';
import { ALERT_GROUPS, ALERT_RULES } from './alert-rules.ts';

/** The address of the documentation. */
const SITE = 'https://sluice.dev';

const ORIGIN = '# Generated from tools/generate/alerts by tools/generate/generate.ts. Change it there.\n';

/** Matchers for the rules of the chart, which are replaced with the release's matchers. */
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
      runbook_url: `${SITE}/runbooks#${name.toLowerCase()}`,
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
    // This release's runbooks, for users who can't access the URL. The chart does not contain the other pages.
    {
      path: 'charts/sluice/files/runbooks.md',
      text: `${renderRunbooks().replaceAll(/\]\(([a-z-]+)\.md(?=[)#])/g, `](${SITE}/$1`)}\n`,
    },
  ];
}

function write(value: object): string {
  return stringify(value, { lineWidth: 110, aliasDuplicateObjects: false });
}

/** Renders docs/runbooks.md: one section for each alert. */
export function renderRunbooks(): string {
  return [
    '# Runbooks',
    'Use this page when an alert fires. Its section explains the impact and the steps to resolve the problem. If you use another namespace than `sluice-system`, replace it in the commands.',
    table(
      ['Severity', 'Meaning'],
      [
        ['critical', 'Events are rejected, delayed, or at risk, or changes to objects and REST calls have no effect.'],
        ['warning', 'A critical problem may follow, or a part of Sluice works more slowly.'],
        ['info', 'A producer or partner needs to act, or there is no impact yet.'],
      ],
    ),
    'The image has no shell. To call the ops port of a pod, run `kubectl -n sluice-system port-forward <pod> 9090`, and `curl http://127.0.0.1:9090/readyz` in another terminal.',
    'To install the alerts:',
    [
      '**Helm**: Set `monitoring.prometheusRule.enabled` in the [chart](install.md#monitoring). The PrometheusRule of the chart covers its own installation.',
      '**Files**: Use `config/alerts/sluice.yaml` for Prometheus, or `config/alerts/prometheus-rule.yaml` for the Prometheus Operator (`kubectl apply -f`). Both cover all installations that your Prometheus monitors.',
      '**Labels**: `namespace` and `job` identify an installation. Without the PodMonitor, give all processes of an installation the same `job` label.',
      '**Links**: If you serve these pages yourself (`make docs`), replace https://sluice.dev in `runbook_url`.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    ...ALERT_RULES.map(renderRunbook),
  ].join('\n\n');
}

/** Replaces the templates of Prometheus in a summary. */
function placeholders(summary: string): string {
  return summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`<$1>`').replaceAll('{{ $value }}', '`<number>`');
}

function renderRunbook({ name, expr, for: duration, severity, summary, impact, steps }: AlertRule): string {
  const since =
    duration === '0m'
      ? 'fires immediately'
      : `fires after ${duration.replace('m', ' minutes').replace(/^1 minutes/, '1 minute')}`;
  return [
    `## ${name}`,
    `**${severity}**, ${since}. ${placeholders(summary)}`,
    `**Impact:** ${impact}`,
    '**Steps**',
    steps.map(step => `- ${step}`).join('\n'),
    '**Query**',
    `\`\`\`promql\n${expr}\n\`\`\``,
  ].join('\n\n');
}
