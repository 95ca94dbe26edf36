import { expect, test } from 'vitest';
import { createRegistry } from './metrics.ts';
import { registerRoleHealth } from './process-metrics.ts';
import { type HealthState, IMPAIRMENTS } from './role-health.ts';

test('the metrics of each role contain its readiness and all reasons', async () => {
  const registry = createRegistry();
  const redis = { reason: 'RedisUnavailable', cause: 'dependency', message: 'SLUICE_REDIS_URL: no answer' } as const;
  const states: Record<string, HealthState> = {
    ingress: { ready: true, impairments: [redis] },
    facade: { ready: false, impairments: [] },
  };
  const roles = { ingress: () => states['ingress'] as HealthState, facade: () => states['facade'] as HealthState };
  registerRoleHealth(registry, roles);
  const series = async () => (await registry.metrics()).split('\n').filter(line => line.startsWith('sluice_role_'));
  const before = await series();
  expect(before).toHaveLength(2 + 2 * Object.keys(IMPAIRMENTS).length);
  expect(before).toEqual(
    expect.arrayContaining(['sluice_role_ready{role="ingress"} 1', 'sluice_role_ready{role="facade"} 0']),
  );
  const impaired = 'sluice_role_impaired{role="ingress",reason="RedisUnavailable"} 1';
  expect(before.filter(line => line.startsWith('sluice_role_impaired') && line.endsWith(' 1'))).toEqual([impaired]);
  states['ingress'] = { ready: true, impairments: [] };
  expect(await series()).toContain(impaired.replace(/1$/, '0'));
});
