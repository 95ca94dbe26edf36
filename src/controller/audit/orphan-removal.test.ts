import { expect, test } from 'vitest';
import { tenantKeys } from '../../redis/keys.ts';
import { type OrphanRemovalDeps, removeOrphans } from './orphan-removal.ts';
import { emptyRoutes } from './orphans.ts';

test('the integrations of a deleted workspace do not stop the process while its partners have Subscriptions', async () => {
  const tenant = 'ten_acme';
  const index: Record<string, string> = {};
  const inboxes = new Set<string>();
  for (let i = 0; i < 5_000; i++) {
    index[`i:int_${i}`] = '';
    index[`s:int_${i}:sub_${i}`] = 'inc';
    inboxes.add(`sub_${i}.inc`);
  }
  const hashes = new Map([[tenantKeys(tenant).index, index]]);
  const stored = { routes: emptyRoutes(tenant), ready: new Set<string>(), hashes };
  const deps = { store: { readRoutes: async () => ({ stored, fences: new Map() }) }, nowMs: () => 0 };
  const owned = { queues: new Set<string>(), integrations: new Set<string>(), inboxes, exists: true };
  const beganMs = performance.now();
  const removal = removeOrphans(deps as unknown as OrphanRemovalDeps, { tenant, name: 'acme', owned }, 1, true);
  expect(await removal).toBe(0);
  expect(performance.now() - beganMs).toBeLessThan(1_000);
});
