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
    'This page has one section for each alert of `config/alerts`. `sluice.yaml` is a rule file for Prometheus; `prometheus-rule.yaml` is the same for the Prometheus operator (`kubectl apply -f config/alerts/prometheus-rule.yaml`). The alerts watch the [metrics](metrics.md) of all processes of one installation. If one Prometheus has several installations, add a label that separates them to each expression. `runbook_url` is the address of this page on https://sluice.dev; replace it if you serve the pages (`make docs`) elsewhere.',
    '**critical**: events are refused, late or at risk now. **warning**: they will be. **info**: a producer or a partner has to act.',
    ...ALERT_RULES.map(renderRunbook),
  ].join('\n\n');
}

function renderRunbook({ name, expr, for: duration, severity, summary, impact, steps }: AlertRule): string {
  const since =
    duration === '0m' ? 'at once' : `after ${duration.replace('m', ' minutes').replace(/^1 minutes/, '1 minute')}`;
  return [
    `## ${name}`,
    `**${severity}**, ${since}. ${summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`<$1>`')}`,
    `**Impact:** ${impact}`,
    '**What to do**',
    steps.map(step => `- ${step}`).join('\n'),
    '**Query**',
    `\`\`\`promql\n${expr}\n\`\`\``,
  ].join('\n\n');
}
