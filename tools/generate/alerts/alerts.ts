import { stringify } from 'yaml';
import type { GeneratedFile } from '../generate.ts';
import type { AlertRule } from './alert-rule.ts';
import { ALERT_GROUPS, ALERT_RULES } from './alert-rules.ts';

const ORIGIN = '# Generated from tools/generate/alerts by tools/generate/generate.ts. Change it there.\n';

/** Returns a rule in the format of Prometheus. */
function renderRule({ name, expr, for: duration, severity, summary, impact }: AlertRule): object {
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

/** Renders the alerts as a file of rules for Prometheus and as an object for its operator. */
export function renderAlerts(): GeneratedFile[] {
  const groups = ALERT_GROUPS.map(({ name, rules }) => ({ name, rules: rules.map(renderRule) }));
  const object = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'sluice', namespace: 'sluice-system', labels: { 'app.kubernetes.io/name': 'sluice' } },
    spec: { groups },
  };
  return [
    { path: 'config/alerts/sluice.yaml', text: ORIGIN + write({ groups }) },
    { path: 'config/alerts/prometheus-rule.yaml', text: ORIGIN + write(object) },
  ];
}

function write(value: object): string {
  return stringify(value, { lineWidth: 110, aliasDuplicateObjects: false });
}

/** Renders docs/runbooks.md: one section for each alert. */
export function renderRunbooks(): string {
  return [
    '# Runbooks',
    'This page contains a runbook for each alert in `config/alerts`. The file `sluice.yaml` contains the rules for Prometheus. If you use the Prometheus Operator, run `kubectl apply -f config/alerts/prometheus-rule.yaml` to apply the same rules. The alerts use the [metrics](metrics.md) of all processes of one installation. If a Prometheus server monitors several installations, add a label for the installation to each expression. The `runbook_url` of an alert is the address of this page on https://sluice.dev. If you serve the pages (`make docs`) at another address, replace it.',
    'The severity **critical** means that events are currently rejected, delayed or at risk. The severity **warning** means that this will happen soon. The severity **info** means that a producer or a partner must take action.',
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
