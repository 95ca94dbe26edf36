import { setImmediate as turn } from 'node:timers/promises';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { PartAudit, PartDifference } from '../../record/control-audit.ts';
import type { Difference } from './drift.ts';
import { type CompareGatesDeps, integrationNames, openGroupKeys } from './gate-comparison.ts';
import { createGateDifferences } from './gate-differences.ts';

/** The number of group keys to collect before yielding to other tasks. */
const KEYS_AT_ONCE = 2_000;

type OpenKeys = Parameters<PartAudit['compare']>[1];

/** Uses the caches to collect all open group keys of a tenant, by integration (`int_…`). */
async function collectOpenKeys(
  caches: CompareGatesDeps['caches'],
  namespace: string,
  names: ReadonlyMap<string, string | undefined>,
): Promise<OpenKeys> {
  const open = new Map<string, { readonly groupKey: string; readonly sinceMs: number }[]>();
  let count = 0;
  for (const [integration, name] of names) {
    if (name === undefined) continue;
    const keys: { readonly groupKey: string; readonly sinceMs: number }[] = [];
    for (const groupKey of openGroupKeys(caches, namespace, name)) {
      // The times are not compared.
      keys.push({ groupKey, sinceMs: 0 });
      if (++count % KEYS_AT_ONCE === 0) await turn();
    }
    open.set(integration, keys);
  }
  return open;
}

/** Compares the parts for the streams of a tenant with its routes and objects. */
export async function compareParts(
  deps: Pick<CompareGatesDeps, 'caches' | 'isPending'> & { readonly parts: PartAudit },
  namespace: string,
  routes: TenantRoutes,
): Promise<Difference[]> {
  const { caches, parts } = deps;
  const names = integrationNames(caches, namespace, routes);
  const gates = createGateDifferences(deps, namespace, names);
  const others: Difference[] = [];
  const note = ({ queue, what, detail, activation }: PartDifference): void => {
    if (activation === undefined) {
      others.push({ id: `${what} ${queue} ${detail}`, what, removes: false });
      return;
    }
    const { integration, groupKey, removes } = activation;
    gates.add('part-activation', integration ?? '', groupKey, removes, `${queue} ${detail} `);
  };
  for await (const found of parts.compare(routes, await collectOpenKeys(caches, namespace, names))) {
    for (const difference of found) note(difference);
  }
  return [...others, ...gates.all()];
}
