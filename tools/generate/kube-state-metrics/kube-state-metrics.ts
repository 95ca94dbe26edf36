import { CONDITION } from '../../../src/api/condition-reasons.ts';
import { GROUP, VERSION } from '../../../src/api/group-version.ts';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import type { GeneratedFile } from '../generate.ts';
import { stringifyOne } from '../manifests/yaml.ts';

const ORIGIN = '# Generated from tools/generate/kube-state-metrics by tools/generate/generate.ts. Change it there.\n';

/** The conditions for which there is a metric, by kind. */
const SHOWN = ['Ready', 'Live', 'Effective'];

/** The labels of all metrics. Together with the kind, they identify the object. */
const LABELS = { namespace: ['metadata', 'namespace'], name: ['metadata', 'name'] };

function gauge(name: string, help: string, fields: object): object {
  return { name, help, each: { type: 'Gauge', gauge: fields }, errorLogV: 5 };
}

/** Returns the two metrics of a condition. Objects without this condition do not have these metrics. */
function metricsOf(type: string): object[] {
  const path = ['status', 'conditions', `[type=${type}]`];
  const word = type.toLowerCase();
  return [
    gauge(
      word,
      `1 if the ${type} condition is True, and 0 otherwise. The labels contain the status and reason of the condition.`,
      {
        path,
        labelsFromPath: { status: ['status'], reason: ['reason'] },
        valueFrom: ['status'],
      },
    ),
    gauge(
      `${word}_transition_timestamp_seconds`,
      `The time at which the status of ${type} changed, in seconds since 1970.`,
      {
        path,
        valueFrom: ['lastTransitionTime'],
      },
    ),
  ];
}

/** Renders the configuration for kube-state-metrics, which then provides metrics for every object. */
export function renderKubeStateMetrics(): GeneratedFile[] {
  const created = gauge(
    'created_timestamp_seconds',
    'The time at which the object was created, in seconds since 1970.',
    {
      path: ['metadata'],
      valueFrom: ['creationTimestamp'],
    },
  );
  const resources = Object.keys(KINDS).map(kind => ({
    groupVersionKind: { group: GROUP, version: VERSION, kind },
    metricNamePrefix: 'sluice_object',
    labelsFromPath: LABELS,
    metrics: [created, ...SHOWN.filter(type => type in CONDITION[kind as keyof typeof CONDITION]).flatMap(metricsOf)],
  }));
  const text = ORIGIN + stringifyOne({ kind: 'CustomResourceStateMetrics', spec: { resources } });
  return ['config/kube-state-metrics', 'charts/sluice/files'].map(folder => ({
    path: `${folder}/custom-resource-state.yaml`,
    text,
  }));
}
