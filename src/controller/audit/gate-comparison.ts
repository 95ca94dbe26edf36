import { publicId, tenantId } from '../../core/ids/ids.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { ControlAudit, Probe } from '../../redis/control-audit.ts';
import { type Cached, type Caches, pairKey } from '../caches/caches.ts';
import { isOpen } from '../kinds/activation/reconcile.ts';
import type { Difference } from './drift.ts';

export interface CompareGatesDeps {
  readonly caches: Pick<Caches, 'Workspace' | 'Integration' | 'Activation'>;
  readonly store: Pick<ControlAudit, 'probe' | 'scanActivations' | 'scanGates'>;
  /** Whether the pair is queued or to be retried. Then a difference is no damage. */
  readonly isPending: (pair: string) => boolean;
}

/** Maximum number of names in a probe. */
const PROBE_NAMES = 500;
/** Maximum number of differences of single pairs. With more, the tenant is repaired as a whole. */
const MOST_PAIRS = 1_000;

/**
 * Compares the open group keys of a tenant in both places in Redis with its objects, one part at a time. Keeps only
 * differences in memory.
 */
export async function compareGates(
  deps: CompareGatesDeps,
  namespace: string,
  routes: TenantRoutes,
): Promise<Difference[]> {
  const { caches, store } = deps;
  const tenant = tenantId(namespace);
  /** `int_…` → name; undefined if the object is gone. */
  const names = new Map<string, string | undefined>(
    Object.keys(routes.integrations).map(integration => [integration, undefined]),
  );
  for (const { metadata } of caches.Integration.store.byIndex('namespace', namespace)) {
    names.set(publicId('Integration', namespace, metadata.name), metadata.name);
  }
  const hasWorker = caches.Workspace.store.get(namespace) !== undefined;
  const differences: Difference[] = [];

  const pairOf = (integration: string, groupKey: string): readonly Cached<'Activation'>[] =>
    caches.Activation.store.byIndex('pair', pairKey(namespace, integration, groupKey));

  function note(what: 'activation' | 'gate', integration: string, groupKey: string, removes: boolean): void {
    if (differences.length > MOST_PAIRS) return;
    const name = names.get(integration);
    const objects = name === undefined ? [] : pairOf(name, groupKey);
    // Changed since the probe.
    if (isOpen(objects) === removes) return;
    if (name !== undefined && deps.isPending(pairKey(namespace, name, groupKey))) return;
    const versions = objects.map(({ metadata }) => `${metadata.uid}@${metadata.generation}`).join();
    differences.push({
      id: `${what} ${removes ? '-' : '+'} ${integration} ${versions} ${groupKey}`,
      what,
      removes,
      ...(name === undefined || !hasWorker ? {} : { pair: { integration: name, groupKey } }),
    });
  }

  /** Yields every open group key of the caches once. */
  function* openKeys(name: string | undefined): Generator<string> {
    if (name === undefined) return;
    for (const activation of caches.Activation.store.byIndex('integration', `${namespace}/${name}`)) {
      const { groupKey } = activation.spec;
      const objects = pairOf(name, groupKey);
      if (objects[0] === activation && isOpen(objects)) yield groupKey;
    }
  }

  /** Place → number of expected group keys that exist there. */
  const present = new Map<string, number>();
  const sizes = new Map<string, number>();
  let batch: Probe[] = [];
  let asked = 0;

  async function flush(): Promise<void> {
    const probes = batch;
    batch = [];
    asked = 0;
    for (const [i, { size, missing }] of (await store.probe(probes)).entries()) {
      const probe = probes[i] as Probe;
      const place = 'groupKeys' in probe ? probe.integration : tenant;
      const asks = 'groupKeys' in probe ? probe.groupKeys : probe.gates;
      sizes.set(place, size);
      present.set(place, (present.get(place) ?? 0) + asks.length - missing.length);
      for (const each of missing) {
        if ('groupKeys' in probe) note('activation', probe.integration, each, false);
        else note('gate', ...parseGate(each), false);
      }
    }
  }

  async function ask(integration: string, groupKeys: readonly string[]): Promise<void> {
    batch.push({ integration, groupKeys });
    if (groupKeys.length > 0) batch.push({ tenant, gates: groupKeys.map(each => `${each}\0${integration}`) });
    asked += 1 + groupKeys.length;
    if (asked >= PROBE_NAMES) await flush();
  }

  for (const [integration, name] of names) {
    let part: string[] = [];
    let isAsked = false;
    for (const groupKey of openKeys(name)) {
      part.push(groupKey);
      if (part.length < PROBE_NAMES) continue;
      await ask(integration, part);
      part = [];
      isAsked = true;
    }
    if (part.length > 0 || !isAsked) await ask(integration, part);
  }
  batch.push({ tenant, gates: [] });
  await flush();

  // Read everything only if there are more than expected.
  for (const [key, size] of sizes) {
    if (size <= (present.get(key) ?? 0)) continue;
    if (key === tenant) {
      for await (const gates of store.scanGates(tenant))
        for (const gate of gates) note('gate', ...parseGate(gate), true);
    } else {
      for await (const keys of store.scanActivations(key)) for (const each of keys) note('activation', key, each, true);
    }
  }
  if (differences.length <= MOST_PAIRS) return differences;
  // Too many: one difference for all of them, the same at each look. Not all were kept, so assume that some remove.
  return (['activation', 'gate'] as const).flatMap(what =>
    differences.some(each => each.what === what) ? [{ id: `many ${what}`, what, removes: true }] : [],
  );
}

/** Parses `group key\0integration`. */
function parseGate(gate: string): [integration: string, groupKey: string] {
  const end = gate.lastIndexOf('\0');
  return [gate.slice(end + 1), gate.slice(0, end)];
}
