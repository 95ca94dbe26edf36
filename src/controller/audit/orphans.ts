import { generationOf, publicId } from '../../core/ids/ids.ts';
import { LONGEST_RETENTION_MS } from '../../core/routing/retention.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { StoredInbox } from '../../record/control-sweep.ts';
import type { Steps } from '../../time/slices.ts';
import type { Caches } from '../caches/caches.ts';

/** Data in Redis owned by a tenant's objects, including objects that have yet to be applied. */
export interface Owned {
  readonly queues: ReadonlySet<string>;
  /** The IDs of the integrations (`int_…`). */
  readonly integrations: ReadonlySet<string>;
  /** The IDs of the inboxes, in the format `sub_….inc`. */
  readonly inboxes: ReadonlySet<string>;
  /** True if the workspace exists, or there are any objects in its namespace. */
  readonly exists: boolean;
}

export const OWNS_NOTHING: Owned = { queues: new Set(), integrations: new Set(), inboxes: new Set(), exists: false };

type OwnerCaches = Pick<Caches, 'Workspace' | 'CatalogStream' | 'Integration' | 'Subscription'>;

/** Returns the routes for a tenant without any objects. */
export function emptyRoutes(tenant: string): TenantRoutes {
  return { tenant, payer: '', plan: '', keys: {}, queues: {}, integrations: {} };
}

/**
 * Returns all data owned by the objects in a workspace, with a piece for each of them. Data is included if its object
 * exists the whole time. If an object is replaced by one with the same name in the meantime, this only includes the
 * data of one of them, so the index must not contain the other one yet.
 */
export function* ownedBy(caches: OwnerCaches, name: string): Steps<Owned> {
  const queues = new Set<string>();
  const integrations = new Set<string>();
  const inboxes = new Set<string>();
  for (const { metadata } of caches.CatalogStream.store.eachByIndex('namespace', name)) {
    queues.add(metadata.name);
    yield;
  }
  for (const { metadata } of caches.Integration.store.eachByIndex('namespace', name)) {
    integrations.add(publicId('Integration', name, metadata.name));
    yield;
  }
  for (const subscription of caches.Subscription.store.eachByIndex('producer', name)) {
    inboxes.add(inboxOf(subscription));
    yield;
  }
  const exists = caches.Workspace.store.get(name) !== undefined || queues.size + integrations.size + inboxes.size > 0;
  return { queues, integrations, inboxes, exists };
}

function inboxOf({ metadata }: AnyObject): string {
  const sub = publicId('Subscription', metadata.namespace ?? '', metadata.name);
  return `${sub}.${generationOf(metadata.uid)}`;
}

export interface Orphans {
  readonly inboxes: readonly (StoredInbox & { readonly retentionMs: number })[];
  readonly queues: readonly { readonly queue: string; readonly gen: string }[];
  readonly integrations: readonly string[];
  /** True if no object owns any data of this tenant. */
  readonly tenant: boolean;
}

/**
 * Returns the orphans of a tenant, i.e. all index entries that are not owned by an object. There is a piece for each
 * entry. Pure function.
 *
 * @param index the index of the tenant. The keys are `q:<queue>`, `i:<integration>` and `s:<integration>:<sub>`. The
 * values are the generations of the queues and subscriptions.
 * @param routes the routes read for the index entries
 */
export function* findOrphans(
  index: Readonly<Record<string, string>>,
  routes: TenantRoutes,
  owned: Owned,
): Steps<Orphans> {
  const inboxes: (StoredInbox & { readonly retentionMs: number })[] = [];
  const queues: { readonly queue: string; readonly gen: string }[] = [];
  const integrations: string[] = [];
  for (const [entry, value] of Object.entries(index)) {
    yield;
    const [kind, name = '', sub = ''] = entry.split(':');
    if (kind === 'q' && !owned.queues.has(name)) {
      queues.push({ queue: name, gen: (Object.hasOwn(routes.queues, name) && routes.queues[name]?.gen) || value });
    } else if (kind === 'i' && !owned.integrations.has(name)) {
      integrations.push(name);
    } else if (kind === 's') {
      const route = routes.integrations[name]?.subscriptions[sub];
      const inc = route?.inc ?? value;
      if (owned.inboxes.has(`${sub}.${inc}`)) continue;
      const queue =
        route !== undefined && Object.hasOwn(routes.queues, route.queue) ? routes.queues[route.queue] : undefined;
      inboxes.push({
        integration: name,
        sub,
        inc,
        ...(route === undefined ? {} : { stream: { tenant: routes.tenant, queue: route.queue } }),
        retentionMs: queue?.retentionMs ?? LONGEST_RETENTION_MS,
      });
    }
  }
  return { inboxes, queues, integrations, tenant: !owned.exists };
}

/** Returns the names of the orphans. Each pass returns the same names. */
export function namesOf({ inboxes, queues, integrations, tenant }: Orphans): string[] {
  return [
    ...inboxes.map(({ sub, inc }) => `${sub}.${inc}`),
    ...queues.map(({ queue, gen }) => `q:${queue}:${gen}`),
    ...integrations,
    ...(tenant ? ['tenant'] : []),
  ];
}
