import { z } from 'zod';
import { section, text, textObject } from './value-types.ts';

export const monitoring = section(
  'Settings for Prometheus and Grafana. They are only created if the corresponding API is available.',
  {
    podMonitor: section('The PodMonitor for the Prometheus Operator.', {
      enabled: z.boolean().default(false).describe('If true, a PodMonitor is created.'),
      interval: text('The time between two scrapes.', '30s'),
      labels: textObject('Labels for the PodMonitor. Prometheus uses these labels to select the object.'),
    }),
    prometheusRule: section('The alerts for the Prometheus Operator.', {
      enabled: z.boolean().default(false).describe('If true, a PrometheusRule is created.'),
      job: text('The value of the job label, if the metrics are not scraped using the PodMonitor of this chart.', '', {
        regex: /^[^"\\\s]*$/,
        rule: 'must not contain quotes, backslashes or spaces',
      }),
      runbookUrl: text(
        'The URL of the runbooks, to which # and the name of the alert are appended. This page is also included in the chart as files/runbooks.md.',
        'https://sluice.dev/runbooks',
      ),
      labels: textObject('Labels for the PrometheusRule. Prometheus uses these labels to select the object.'),
    }),
    kubeStateMetrics: section('Configuration for kube-state-metrics, which provides metrics for each Sluice object.', {
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'If true, a ConfigMap with the file config.yaml for --custom-resource-state-config-file is created. One ConfigMap is enough for several releases.',
        ),
      namespace: text(
        'The namespace of kube-state-metrics, where the ConfigMap can be mounted. Defaults to the release namespace.',
      ),
      labels: textObject('The labels of the ConfigMap.'),
    }),
    dashboards: section('Dashboard for Grafana.', {
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'If true, a ConfigMap with the dashboard is created. Each Grafana only needs one dashboard, because it can display any installation.',
        ),
      labels: textObject('Labels for the ConfigMap. The Grafana sidecar uses these labels to find the ConfigMap.', {
        grafana_dashboard: '1',
      }),
    }),
  },
);
