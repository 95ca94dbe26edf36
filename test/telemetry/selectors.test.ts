import { expect, test } from 'vitest';
import { parseExposition } from '../support/prometheus/exposition.ts';
import { missingFrom } from './selectors.ts';

const series = parseExposition(`# TYPE sluice_a_total counter
sluice_a_total{result="good",code="2\\"00"} 3
sluice_b_seconds_bucket{le="+Inf"} 1
nodejs_c NaN`);

test('reads the text format', () => {
  expect(series.map(({ name, labels }) => [name, labels])).toEqual([
    ['sluice_a_total', { result: 'good', code: '2\\"00' }],
    ['sluice_b_seconds_bucket', { le: '+Inf' }],
    ['nodejs_c', {}],
  ]);
});

test.each([
  ['sum by (result) (rate(sluice_a_total{result="good"}[5m])) / sum(sluice_a_total) > 0.5', []],
  ['histogram_quantile(0.99, sum by (le) (rate(sluice_b_seconds_bucket[5m]))) and on (instance) nodejs_c', []],
  ['sluice_a_total{result="bad"}', ['sluice_a_total{result="bad"}']],
  ['sluice_a_total{result=~"b.d",cause!="x"}', ['sluice_a_total{cause!="x"}']],
  ['sum by (reason) (sluice_a_total) or sluice_gone', ['sluice_gone', 'by (reason)']],
])('%s', (expression, missing) => {
  expect(missingFrom(series, expression)).toEqual(missing);
});
