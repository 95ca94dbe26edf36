import { createHash } from 'node:crypto';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routing/routes.ts';
import { finish, type Steps } from '../core/routing/steps.ts';
import { integrationKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import { indexOf, subscribersOf, withoutSame } from './tenant-index.ts';
import { keepUnowned } from './unowned-routes.ts';

/** Use `UNLINK` for large keys: Redis will free them in the background. `DEL` would block all clients. */
export type PatchCommand = 'HSET' | 'HSETNX' | 'HDEL' | 'SADD' | 'SREM' | 'DEL' | 'UNLINK';
export interface PatchOp {
  readonly command: PatchCommand;
  readonly key: string;
  readonly args: readonly (string | number)[];
}

/**
 * A single write to one slot. The write is atomic and fenced. `meta` is the hash that contains the fence of this slot.
 */
export interface SlotPatch {
  readonly meta: string;
  readonly ops: readonly PatchOp[];
}

/** The tenant state in Redis. Includes its routes and the slots that are marked as ready. */
export interface StoredRoutes {
  readonly routes: TenantRoutes;
  readonly ready: ReadonlySet<string>;
  /**
   * Key → stored fields, for everything that was read. For a damaged key, this is different from `routes`. After a
   * write, this is absent.
   */
  readonly hashes?: ReadonlyMap<string, Fields>;
}

export interface RoutesPlan {
  /** In the order in which they must be written: new names, queues, integrations, and the tenant. */
  readonly patches: readonly SlotPatch[];
  /**
   * The markers are written after everything else, including the activations. The marker of the tenant is always
   * written last.
   */
  readonly ready: readonly SlotPatch[];
}

export type Fields = Record<string, string>;

/** Kept from one plan to the next, because a tenant may have thousands of streams. */
const queueFieldsMade = new WeakMap<QueueRoute, Fields>();

export function queueFields(route: QueueRoute): Fields {
  const known = queueFieldsMade.get(route);
  if (known !== undefined) return known;
  const fields: Fields = {
    gen: route.gen,
    state: route.state,
    retentionMs: String(route.retentionMs),
    maxBytes: String(route.maxBytes),
    source: route.source,
    eventTypes: JSON.stringify(route.eventTypes),
    contextHeaders: JSON.stringify(route.contextHeaders),
  };
  const whole = { ...fields, cfgv: versionOf(fields) };
  queueFieldsMade.set(route, whole);
  return whole;
}

/** Kept from one plan to the next because hashing 10,000 routes takes longer than the limit for a barrier. */
const fieldsMade = new WeakMap<SubscriptionRoute, Fields>();

export function subscriptionFields(tenant: string, route: SubscriptionRoute): Fields {
  const known = fieldsMade.get(route);
  if (known?.tenant === tenant) return known;
  const fields: Fields = {
    inc: route.inc,
    tenant,
    queue: route.queue,
    gen: route.gen,
    route: route.route,
    send: route.send,
    cap: route.maxPerSecond === undefined ? String(route.cap) : `${route.cap} ${route.maxPerSecond}`,
    ...(route.enabledMs === undefined ? {} : { enabled: String(route.enabledMs) }),
    ...(route.onUnblock === undefined ? {} : { onUnblock: route.onUnblock }),
    ...(route.unordered ? { unordered: '1' } : {}),
    ...(route.endpoint === '' ? {} : { endpoint: route.endpoint }),
  };
  const whole = { ...fields, cfgv: versionOf(fields) };
  fieldsMade.set(route, whole);
  return whole;
}

/**
 * The version of a configuration. Since it is derived from the content, writing the same content again has no effect.
 */
function versionOf(fields: Fields): string {
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 10);
}

/** Configuration fields of a queue or subscription. */
export const QUEUE_FIELDS = [
  'gen',
  'state',
  'retentionMs',
  'maxBytes',
  'source',
  'eventTypes',
  'contextHeaders',
  'cfgv',
];
export const SUBSCRIPTION_FIELDS = [
  'inc',
  'tenant',
  'queue',
  'gen',
  'route',
  'send',
  'onUnblock',
  'cap',
  'enabled',
  'unordered',
  'endpoint',
  'cfgv',
];

function hashOps(key: string, have: Fields, want: Fields): PatchOp[] {
  const set: string[] = [];
  for (const [field, value] of Object.entries(want)) if (have[field] !== value) set.push(field, value);
  const drop = Object.keys(have).filter(field => !(field in want));
  const ops: PatchOp[] = [];
  for (let at = 0; at < set.length; at += 500) ops.push({ command: 'HSET', key, args: set.slice(at, at + 500) });
  for (let at = 0; at < drop.length; at += 500) ops.push({ command: 'HDEL', key, args: drop.slice(at, at + 500) });
  return ops;
}

/** Returns true if a configuration has not changed since it was written, i.e. its version matches the content. */
function isWhole({ cfgv, ...fields }: Fields): boolean {
  return cfgv === versionOf(fields);
}

const GONE: IntegrationRoute = { state: 'closed', sinceMs: 0, subscriptions: {} };

/** State in Redis for the given routes. */
interface Standing {
  /** Redis contains the given routes, so identical objects don't need to be compared. */
  readonly isWritten: boolean;
  /** The fields of a hash. The fields have been read from Redis or derived from the routes. */
  readonly held: (key: string, derived: Fields) => Fields;
  /**
   * A different generation only belongs to a successor if the hash is complete. If it is damaged, we repair it and keep
   * its progress.
   */
  readonly isMended: (key: string) => boolean;
}

function standingOf({ hashes }: StoredRoutes): Standing {
  const held = (key: string, derived: Fields): Fields => hashes?.get(key) ?? derived;
  return { isWritten: hashes === undefined, held, isMended: key => hashes !== undefined && !isWhole(held(key, {})) };
}

function planQueue({ held, isMended }: Standing, meta: string, old: QueueRoute | undefined, route: QueueRoute) {
  const isMade = old === undefined || (old.gen !== route.gen && !isMended(meta));
  const ops: PatchOp[] = [];
  // A stream which was recreated is not ready until all of its data has been written. Keep the fence, so that a
  // controller that is no longer the leader can't write here again.
  if (isMade && old !== undefined) ops.push({ command: 'HDEL', key: meta, args: ['ready'] });
  ops.push(...hashOps(meta, held(meta, old === undefined ? {} : queueFields(old)), queueFields(route)));
  return { ops, isMade };
}

function planSubscription(
  { held, isMended }: Standing,
  { key, tenant }: { readonly key: string; readonly tenant: string },
  before: SubscriptionRoute | undefined,
  next: SubscriptionRoute,
): PatchOp[] {
  const ops: PatchOp[] = [];
  const isMade = before === undefined || (before.inc !== next.inc && !isMended(key));
  if (isMade) {
    if (before !== undefined) ops.push({ command: 'DEL', key, args: [] });
    ops.push({ command: 'HSETNX', key, args: ['since', next.sinceMs] });
  }
  const stands = before === undefined ? held(key, {}) : isMade ? {} : held(key, subscriptionFields(tenant, before));
  return [...ops, ...hashOps(key, stands, subscriptionFields(tenant, next))];
}

function planIntegration(
  standing: Standing,
  { integration, tenant }: { readonly integration: string; readonly tenant: string },
  old: IntegrationRoute,
  route: IntegrationRoute,
): PatchOp[] {
  const i = integrationKeys(integration);
  const ops: PatchOp[] = [];
  if (old === GONE || standing.held(i.meta, { state: old.state }).state !== route.state) {
    const since = route.state === 'active' ? ['since', route.sinceMs] : [];
    ops.push({ command: 'HSET', key: i.meta, args: ['state', route.state, ...since] });
  }
  for (const [sub, next] of Object.entries(route.subscriptions)) {
    const before = old.subscriptions[sub];
    if (standing.isWritten && before === next && old.state === route.state) continue;
    ops.push(...planSubscription(standing, { key: i.sub(sub), tenant }, before, next));
  }
  return ops;
}

/**
 * The changes of the tenant itself, with a piece for each look at all routes. `names` contains the names to add to its
 * index.
 */
function* planTenant({ held, isWritten }: Standing, have: TenantRoutes, want: TenantRoutes) {
  const t = tenantKeys(want.tenant);
  const ops: PatchOp[] = [];
  if (have.payer !== want.payer) ops.push({ command: 'HSET', key: t.meta, args: ['payer', want.payer] });
  if (have.plan !== want.plan) ops.push({ command: 'HSET', key: t.meta, args: ['plan', want.plan] });
  for (const name of ['eventsPerSecond', 'storedBytes'] as const) {
    const limit = want[name];
    if (have[name] === limit) continue;
    const args = limit === undefined ? [name] : [name, limit];
    ops.push({ command: limit === undefined ? 'HDEL' : 'HSET', key: t.meta, args });
  }
  ops.push(...hashOps(t.keys, have.keys, want.keys));
  yield;
  const had = isWritten ? withoutSame(have, want) : have;
  yield;
  const has = isWritten ? withoutSame(want, have) : want;
  yield;
  const hadSubscribers = subscribersOf(had);
  yield;
  const subscribers = subscribersOf(has);
  yield;
  for (const queue of new Set([...Object.keys(hadSubscribers), ...Object.keys(subscribers)])) {
    yield;
    ops.push(...hashOps(t.subs(queue), held(t.subs(queue), hadSubscribers[queue] ?? {}), subscribers[queue] ?? {}));
  }
  // Unknown names in the index are removed by the sweep.
  yield;
  const hadIndex = held(t.index, indexOf(had));
  yield;
  const hasIndex = indexOf(has);
  yield;
  const index = hashOps(t.index, hadIndex, hasIndex);
  return { ops, names: index.filter(({ command }) => command === 'HSET') };
}

/**
 * Returns the writes required to change the record from its current state to `want`. The function is pure. The returned
 * writes never remove anything. A queue or subscription without an object is closed and kept.
 */
export function planRoutes(have: StoredRoutes, wanted: TenantRoutes): RoutesPlan {
  return finish(planSteps(have, wanted));
}

/** Like `planRoutes`, but yields a piece for each stream and for each integration. */
export function* planSteps(have: StoredRoutes, wanted: TenantRoutes): Steps<RoutesPlan> {
  const want = keepUnowned(have.routes, wanted);
  yield;
  const { tenant } = want;
  const standing = standingOf(have);
  const patches: SlotPatch[] = [];
  const ready: SlotPatch[] = [];
  function add(meta: string, ops: readonly PatchOp[], isMade = false): void {
    if (ops.length > 0) patches.push({ meta, ops });
    if (isMade || !have.ready.has(meta))
      ready.push({ meta, ops: [{ command: 'HSET', key: meta, args: ['ready', '1'] }] });
  }

  for (const [queue, route] of Object.entries(want.queues)) {
    yield;
    const { meta } = queueKeys(tenant, queue);
    const old = Object.hasOwn(have.routes.queues, queue) ? have.routes.queues[queue] : undefined;
    const { ops, isMade } = planQueue(standing, meta, old, route);
    add(meta, ops, isMade);
  }
  for (const [integration, route] of Object.entries(want.integrations)) {
    yield;
    const { meta } = integrationKeys(integration);
    const old = have.routes.integrations[integration] ?? GONE;
    if (standing.isWritten && old === route && have.ready.has(meta)) continue;
    add(meta, planIntegration(standing, { integration, tenant }, old, route));
  }
  const { meta } = tenantKeys(tenant);
  const { ops, names } = yield* planTenant(standing, have.routes, want);
  add(meta, ops);
  // The name is added before it is created. If a controller stops in between, the next controller can find and close
  // it.
  if (names.length > 0) patches.unshift({ meta, ops: names });
  return { patches, ready };
}
