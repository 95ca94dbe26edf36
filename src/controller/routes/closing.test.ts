import { expect, test } from 'vitest';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import { applyClosing, type ClosingDeps } from './closing.ts';

test('the time to compare the group keys of a paused workspace grows with their number, not with its square', async () => {
  const groupKeys = Array.from({ length: 60_000 }, (_, i) => `customer-${i}`);
  const routes: TenantRoutes = {
    tenant: 'ten_acme',
    payer: 'acc_acme',
    plan: 'Free',
    keys: {},
    queues: {},
    integrations: { int_ada: { state: 'closed', sinceMs: 0, subscriptions: {} } },
  };
  const snapshot: TenantSnapshot = {
    name: 'acme',
    secretKeys: [],
    streams: [],
    packages: [],
    blocks: [],
    integrations: [],
    subscriptions: [],
  };
  const closed: string[] = [];
  const deps = {
    control: {
      readActivations: async () => new Map([...groupKeys, 'stale'].map(groupKey => [groupKey, 1])),
      setActivation: async (_fence: number, _integration: string, groupKey: string) => closed.push(groupKey),
      closeParts: async () => {},
    },
    nowMs: () => 0,
    openGates: () => new Map([['int_ada', groupKeys.map(groupKey => ({ groupKey, sinceMs: 1 }))]]),
    exclusively: (_name: string, run: () => Promise<void>) => run(),
    *gather() {
      yield;
      return snapshot;
    },
    objectsOf: () => [],
    knowsKeys: () => true,
  } as unknown as ClosingDeps;
  const beganMs = performance.now();
  await applyClosing(deps, { name: 'acme', fence: 1, stored: { routes, ready: new Set() }, fresh: true });
  expect(closed).toEqual(['stale']);
  expect(performance.now() - beganMs).toBeLessThan(2_000);
});
