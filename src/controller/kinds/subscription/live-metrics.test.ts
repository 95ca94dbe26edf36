import { expect, test } from 'vitest';
import { parseExposition } from '../../../../test/support/prometheus/exposition.ts';
import type { Condition } from '../../../api/conditions.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { registerLiveMetrics } from './live-metrics.ts';

test('counts the subscriptions that are not live, by reason', async () => {
  const registry = createRegistry();
  const condition = (status: Condition['status'], reason: string): Condition => ({
    type: 'Live',
    status,
    reason,
    message: '',
    observedGeneration: 1,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  });
  const subscriptions = [
    { status: { conditions: [condition('True', 'Live')] } },
    { status: { conditions: [condition('False', 'SpecRefused')] } },
    { status: { conditions: [condition('False', 'SpecRefused')] } },
    { status: { conditions: [condition('False', 'Blocked')] } },
    { status: {} },
    {},
  ];
  registerLiveMetrics(registry, () => subscriptions);
  const count = async () => {
    const series = parseExposition(await registry.metrics());
    const found = series.filter(({ name }) => name === 'sluice_controller_subscriptions_not_live');
    return Object.fromEntries(found.map(each => [each.labels['reason'], each.value]));
  };
  expect(await count()).toMatchObject({ SpecRefused: 2, Blocked: 1, Suspended: 0 });
  expect(await count()).not.toHaveProperty('Live');
  subscriptions.length = 0;
  expect(new Set(Object.values(await count()))).toEqual(new Set([0]));
});
