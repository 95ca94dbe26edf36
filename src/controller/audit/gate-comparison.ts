import { publicId } from '../../core/ids/ids.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { ControlAudit } from '../../record/control-audit.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import type { Caches } from '../caches/caches.ts';
import { isOpen, pairsOf } from '../kinds/activation/open-gates.ts';
import type { Difference } from './drift.ts';
import { createGateDifferences } from './gate-differences.ts';
import { createGateProbe } from './gate-probe.ts';

export interface CompareGatesDeps {
  readonly caches: Pick<Caches, 'Workspace' | 'Integration' | 'Activation'>;
  readonly store: Pick<ControlAudit, 'probe' | 'scanActivations'>;
  /**
   * Returns true if the pair is in the queue or is waiting for a retry. In this case, we expect that there is a
   * difference.
   */
  readonly isPending: (pair: string) => boolean;
}

/**
 * Compares the open group keys that are recorded in Redis for a tenant with its objects. Only those of a single
 * integration and the differences are in memory.
 */
export async function compareGates(
  deps: CompareGatesDeps,
  namespace: string,
  routes: TenantRoutes,
): Promise<Difference[]> {
  const { caches, store } = deps;
  const names = integrationNames(caches, namespace, routes);
  const differences = createGateDifferences(deps, namespace, names);
  const probe = createGateProbe(store, (integration, groupKey) =>
    differences.add('activation', integration, groupKey, false),
  );
  for (const [integration, name] of names) {
    await probe.expect(integration, name === undefined ? [] : await inSlices(openGroupKeys(caches, namespace, name)));
  }
  // If Redis contains more group keys for an integration than we expect, we need to read all of them.
  for (const integration of await probe.finish()) {
    for await (const groupKeys of store.scanActivations(integration)) {
      for (const groupKey of groupKeys) differences.add('activation', integration, groupKey, true);
    }
  }
  return differences.all();
}

/**
 * Returns the names of all integrations with an object or a route, by id (`int_…`). The name is undefined for an
 * integration without an object.
 */
export function integrationNames(
  { Integration }: Pick<Caches, 'Integration'>,
  namespace: string,
  routes: TenantRoutes,
): Map<string, string | undefined> {
  const names = new Map<string, string | undefined>(
    Object.keys(routes.integrations).map(integration => [integration, undefined]),
  );
  for (const { metadata } of Integration.store.byIndex('namespace', namespace)) {
    names.set(publicId('Integration', namespace, metadata.name), metadata.name);
  }
  return names;
}

/** Returns all open group keys of an integration in the caches, without duplicates. */
export function* openGroupKeys(
  caches: Pick<Caches, 'Activation'>,
  namespace: string,
  integration: string,
): Steps<string[]> {
  const open: string[] = [];
  for (const [groupKey, activations] of pairsOf(caches, namespace, integration)) {
    if (isOpen(activations)) open.push(groupKey);
    yield;
  }
  return open;
}
