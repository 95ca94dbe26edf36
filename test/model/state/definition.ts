import { publicId } from '../../../src/core/ids/ids.ts';
import type { ModelObject, Objects } from './objects.ts';

/** The events that a subscription may receive, according to its definition. */
export interface DefinedSubscription {
  readonly uid: string;
  readonly name: string;
  /** The names of the integration and the stream. */
  readonly integration: string;
  readonly stream: string;
  readonly streamUid: string;
  /** open: wanted and not held back; paused: wanted, but blocked or suspended; closed: not wanted. */
  readonly route: 'open' | 'paused' | 'closed';
  readonly sends: boolean;
  /** Whether it has an endpoint. */
  readonly pushed: boolean;
  /**
   * The setting of the Blocks that apply to it for events in the meantime: `skip` if all of them use it. Undefined if
   * it is not blocked.
   */
  readonly covers: 'none' | 'continue' | 'skip';
}

/** The expected routes for the objects of a tenant. This is a second, simpler implementation of the rules. */
export interface Definition {
  /** False if no events of the tenant are routed. */
  readonly hasWorkspace: boolean;
  /** The uid of each stream, and whether it accepts events. */
  readonly streams: ReadonlyMap<string, { readonly uid: string; readonly takesEvents: boolean }>;
  readonly integrations: ReadonlyMap<string, 'pending' | 'active' | 'closed'>;
  /** Subscriptions by the uid of their object. */
  readonly subscriptions: ReadonlyMap<string, DefinedSubscription>;
  /** All open pairs, as `integration/group key`. */
  readonly gates: ReadonlySet<string>;
}

function coverOf(objects: Objects, tenant: string, integration: string, stream: string): DefinedSubscription['covers'] {
  const blocks = objects.list('Block', tenant).filter(({ spec }) => {
    if (spec.integration !== integration) return false;
    if (spec.target.kind === 'CatalogStream') return spec.target.name === stream;
    const target = objects.get('Package', `${tenant}/${spec.target.name}`);
    return target?.spec.streams?.includes(stream) === true;
  });
  if (blocks.length === 0) return 'none';
  return blocks.every(({ spec }) => spec.onUnblock === 'SkipToNow') ? 'skip' : 'continue';
}

function stateOf({ spec }: ModelObject<'Integration'>): 'pending' | 'active' | 'closed' {
  if (spec.revoked === true || spec.declined === true) return 'closed';
  return spec.workspace === undefined ? 'pending' : 'active';
}

function hasWorkspace(objects: Objects, tenant: string): boolean {
  const workspace = objects.workspace(tenant);
  return workspace !== undefined && workspace.metadata.deletionTimestamp === undefined;
}

/**
 * Returns whether a subscription is wanted: granted by the producer, requested by the partner, and for a stream that
 * accepts it.
 */
function isWanted(objects: Objects, tenant: string, subscription: ModelObject<'Subscription'>): boolean {
  const { metadata, spec, status } = subscription;
  const integration = objects.get('Integration', `${tenant}/${spec.integration}`);
  const stream = objects.get('CatalogStream', `${tenant}/${spec.stream}`);
  if (metadata.deletionTimestamp !== undefined || integration === undefined || stream === undefined) return false;
  if (!hasWorkspace(objects, tenant)) return false;
  if (stateOf(integration) !== 'active' || integration.spec.workspace !== metadata.namespace) return false;
  return stream.spec.public === true || status?.admittedAt !== undefined;
}

function defineSubscription(
  objects: Objects,
  tenant: string,
  subscription: ModelObject<'Subscription'>,
  taken: Set<string>,
): DefinedSubscription {
  const { metadata, spec } = subscription;
  const pair = `${spec.integration}/${spec.stream}`;
  const wanted = isWanted(objects, tenant, subscription) && !taken.has(pair);
  if (wanted) taken.add(pair);
  const covers = coverOf(objects, tenant, spec.integration, spec.stream);
  const held = spec.suspended === true || covers !== 'none';
  const route = !wanted ? 'closed' : held ? 'paused' : 'open';
  return {
    uid: metadata.uid,
    name: metadata.name,
    integration: spec.integration,
    stream: spec.stream,
    streamUid: objects.get('CatalogStream', `${tenant}/${spec.stream}`)?.metadata.uid ?? '',
    route,
    sends: route === 'open' && spec.endpoint !== undefined,
    pushed: spec.endpoint !== undefined,
    covers,
  };
}

function openPairs(objects: Objects, tenant: string): Set<string> {
  const open = new Set<string>();
  const closed = new Set<string>();
  for (const { metadata, spec } of objects.list('Activation', tenant)) {
    const pair = `${spec.integration}/${spec.groupKey}`;
    if (objects.get('Integration', `${tenant}/${spec.integration}`) === undefined) continue;
    if (spec.revoked === true) closed.add(pair);
    else if (metadata.deletionTimestamp === undefined) open.add(pair);
  }
  return new Set([...open].filter(pair => !closed.has(pair)));
}

export function defineTenant(objects: Objects, tenant: string): Definition {
  const taken = new Set<string>();
  const open = hasWorkspace(objects, tenant);
  const subscriptions = objects
    .subscriptionsTo(tenant)
    .toSorted((a, b) => ageOf(a) - ageOf(b) || (a.metadata.uid < b.metadata.uid ? -1 : 1))
    .map(subscription => defineSubscription(objects, tenant, subscription, taken));
  return {
    hasWorkspace: open,
    streams: new Map(
      objects
        .list('CatalogStream', tenant)
        .map(({ metadata }) => [
          metadata.name,
          { uid: metadata.uid, takesEvents: open && metadata.deletionTimestamp === undefined },
        ]),
    ),
    integrations: new Map(
      objects.list('Integration', tenant).map(object => [object.metadata.name, open ? stateOf(object) : 'closed']),
    ),
    subscriptions: new Map(subscriptions.map(each => [each.uid, each])),
    gates: openPairs(objects, tenant),
  };
}

/**
 * Returns the state of a paused tenant, which is unchanged except for changes of its objects that close something.
 * Nothing is opened, regardless of the objects.
 * @param had the previous state
 */
export function defineClosed(had: Definition, objects: Objects, tenant: string): Definition {
  const gates = openPairs(objects, tenant);
  const ended = (name: string) => {
    const object = objects.get('Integration', `${tenant}/${name}`);
    return object === undefined || stateOf(object) === 'closed';
  };
  const close = (each: DefinedSubscription): DefinedSubscription => {
    if (each.route === 'closed') return each;
    const object = objects.subscriptionsTo(tenant).find(({ metadata }) => metadata.uid === each.uid);
    const integration = objects.get('Integration', `${tenant}/${each.integration}`);
    const granted = !ended(each.integration) && integration?.spec.workspace === object?.metadata.namespace;
    if (object === undefined || object.metadata.deletionTimestamp !== undefined || !granted) {
      return { ...each, route: 'closed', sends: false };
    }
    const covers = coverOf(objects, tenant, each.integration, each.stream);
    if (covers === 'none') return each;
    return { ...each, route: 'paused', sends: false, covers: each.covers === 'none' ? covers : each.covers };
  };
  const there = new Set(objects.subscriptionsTo(tenant).map(({ metadata }) => metadata.uid));
  const integrations = [...had.integrations].filter(([name]) => objects.get('Integration', `${tenant}/${name}`));
  return {
    ...had,
    integrations: new Map(integrations.map(([name, state]) => [name, ended(name) ? 'closed' : state])),
    subscriptions: new Map(
      [...had.subscriptions].filter(([uid]) => there.has(uid)).map(([uid, each]) => [uid, close(each)]),
    ),
    gates: new Set([...had.gates].filter(pair => gates.has(pair))),
  };
}

function ageOf({ metadata }: ModelObject<'Subscription'>): number {
  return Date.parse(metadata.creationTimestamp ?? '');
}

/** Returns the `int_…` id of an integration by its name. */
export function integrationId(tenant: string, integration: string): string {
  return publicId('Integration', tenant, integration);
}

/** Returns the `sub_…` id of a subscription by its name, which is in the partner's namespace. */
export function subscriptionId(namespace: string, name: string): string {
  return publicId('Subscription', namespace, name);
}
