import { beforeAll, expect, test } from 'vitest';
import { type Helm, type Manifest, openHelm, renderChart } from './support/helm.ts';
import { REQUIRED } from './support/value-sets.ts';

let helm: Helm;

beforeAll(async () => {
  helm = await openHelm();
});

interface PrometheusRule extends Manifest {
  readonly spec: {
    readonly groups: readonly {
      readonly rules: readonly { readonly expr: string; readonly annotations: { readonly runbook_url: string } }[];
    }[];
  };
}

async function rulesOf(prometheusRule: object) {
  const values = { ...REQUIRED, monitoring: { prometheusRule: { enabled: true, ...prometheusRule } } };
  const place = { release: 'blue', namespace: 'events', apis: ['monitoring.coreos.com/v1'] };
  const objects = await renderChart(helm, values, place);
  const [rule] = objects.filter(({ kind }) => kind === 'PrometheusRule') as PrometheusRule[];
  return rule?.spec.groups.flatMap(({ rules }) => rules) ?? [];
}

test('the alerts of a release select its own metrics and reference its runbooks', async () => {
  const rules = await rulesOf({ runbookUrl: 'https://runbooks.example.com/sluice' });
  expect(rules.length).toBeGreaterThan(30);
  for (const { expr, annotations } of rules) {
    expect(expr).toContain('{namespace="events",job="events/blue-sluice"');
    expect(expr).not.toContain('sluice-system');
    expect(annotations.runbook_url).toMatch(/^https:\/\/runbooks\.example\.com\/sluice#sluice[a-z]+$/);
  }
});

test('the alerts select another job if the metrics have another job', async () => {
  for (const { expr } of await rulesOf({ job: 'kubernetes-pods' })) {
    expect(expr).toContain('{namespace="events",job="kubernetes-pods"');
  }
});
