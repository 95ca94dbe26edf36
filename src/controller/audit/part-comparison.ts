import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { PartAudit, PartDifference } from '../../record/control-audit.ts';
import type { OpenKey } from '../../record/open-keys.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import type { Difference } from './drift.ts';
import { type CompareGatesDeps, integrationNames, openGroupKeys } from './gate-comparison.ts';
import { createGateDifferences } from './gate-differences.ts';

type OpenKeys = Parameters<PartAudit['compare']>[1];

/** Uses the caches to collect all open group keys of a tenant, by integration (`int_…`). */
function* collectOpenKeys(
  caches: CompareGatesDeps['caches'],
  namespace: string,
  names: ReadonlyMap<string, string | undefined>,
): Steps<OpenKeys> {
  const open = new Map<string, readonly OpenKey[]>();
  for (const [integration, name] of names) {
    if (name === undefined) continue;
    // The times are not compared.
    const timed = (yield* openGroupKeys(caches, namespace, name)).map(groupKey => ({ groupKey, sinceMs: 0 }));
    open.set(integration, timed);
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
  const openKeys = await inSlices(collectOpenKeys(caches, namespace, names));
  for await (const found of parts.compare(routes, openKeys)) {
    for (const difference of found) note(difference);
  }
  return [...others, ...gates.all()];
}
