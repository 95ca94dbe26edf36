import { createHash } from 'node:crypto';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routing/routes.ts';
import { inboxContents, inboxKeys, integrationKeys, queueContents, queueKeys, tenantKeys } from './keys.ts';
import { indexOf, subscribersOf, withoutSame } from './tenant-index.ts';

/** `UNLINK` for what may be large: Redis frees it beside its work, where `DEL` holds everybody up. */
export type PatchCommand =
  | 'HSET'
  | 'HSETNX'
  | 'HDEL'
  | 'ZADD'
  | 'ZREM'
  | 'SADD'
  | 'SREM'
  | 'DEL'
  | 'UNLINK'
  | 'PEXPIRE';
export interface PatchOp {
  readonly command: PatchCommand;
  readonly key: string;
  readonly args: readonly (string | number)[];
}

/** One fenced, atomic write to one slot; `meta` is the hash that holds the slot's fence. */
export interface SlotPatch {
  readonly meta: string;
  readonly ops: readonly PatchOp[];
}

/** What of a tenant stands in Redis: its routes, and which slots are marked ready. */
export interface StoredRoutes {
  readonly routes: TenantRoutes;
  readonly ready: ReadonlySet<string>;
  /**
   * Key → the fields of ours that it holds, of everything that was read: where something is damaged, that is not what
   * `routes` say. Absent once it was written.
   */
  readonly hashes?: ReadonlyMap<string, Fields>;
}

export interface RoutesPlan {
  /** In the order in which they must be written: the names of what is new, queues, integrations, then the tenant. */
  readonly patches: readonly SlotPatch[];
  /** Markers, written after everything else (also the activations): last of all the tenant's. */
  readonly ready: readonly SlotPatch[];
  /**
   * Subscriptions that opened: the router catches them up, the dispatcher looks at them. Those that closed, too: what
   * the cursor left behind for them is let go of, or a queue could never drain.
   */
  readonly opened: readonly {
    readonly queue: string;
    readonly integration: string;
    readonly sub: string;
    readonly inc: string;
  }[];
  readonly queuesTouched: readonly string[];
}

export type Fields = Record<string, string>;

export function queueFields(route: QueueRoute): Fields {
  const fields: Fields = {
    gen: route.gen,
    state: route.state,
    retentionMs: String(route.retentionMs),
    maxBytes: String(route.maxBytes),
    source: route.source,
    eventTypes: JSON.stringify(route.eventTypes),
    contextHeaders: JSON.stringify(route.contextHeaders),
  };
  return { ...fields, cfgv: versionOf(fields) };
}

/** Of routes that are kept from one plan to the next: hashing 10,000 of them takes longer than a barrier may. */
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

/** Version of a configuration: of its content, so that writing the same twice is the same. */
function versionOf(fields: Fields): string {
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 10);
}

/** Fields that the controller owns in the hash of a queue or a subscription; all others are the data plane's. */
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

/** Used where nobody knows a retention any more: the longest that there is, ms. */
export const LONGEST_RETENTION_MS = 720 * 3_600_000;

function expireAll(keys: readonly string[], afterMs: number): PatchOp[] {
  return keys.map(key => ({ command: 'PEXPIRE', key, args: [afterMs] }));
}

/** What the data plane keeps beside them of one generation of a queue. */
const QUEUE_PROGRESS = ['ready', 'cur', 'owner', 'until', 'bytes', 'ms'];

function hashOps(key: string, have: Fields, want: Fields): PatchOp[] {
  const set: string[] = [];
  for (const [field, value] of Object.entries(want)) if (have[field] !== value) set.push(field, value);
  const drop = Object.keys(have).filter(field => !(field in want));
  const ops: PatchOp[] = [];
  for (let at = 0; at < set.length; at += 500) ops.push({ command: 'HSET', key, args: set.slice(at, at + 500) });
  for (let at = 0; at < drop.length; at += 500) ops.push({ command: 'HDEL', key, args: drop.slice(at, at + 500) });
  return ops;
}

/** Whether a configuration is as it was written: its version is of its content. */
function isWhole({ cfgv, ...fields }: Fields): boolean {
  return cfgv === versionOf(fields);
}

const GONE: IntegrationRoute = { state: 'closed', sinceMs: 0, subscriptions: {} };

/**
 * What must be written so that Redis holds `want`, given what it holds: pure. Nothing that lies in a queue or an inbox is
 * ever removed here; a queue or subscription that no object wants any more is closed, and kept.
 *
 * @param nowMs Redis's clock: where a subscription goes on whose Blocks said that the backlog is skipped
 */
export function planRoutes(have: StoredRoutes, wanted: TenantRoutes, nowMs: number): RoutesPlan {
  const want = keepUnowned(have.routes, wanted);
  const { tenant } = want;
  const t = tenantKeys(tenant);
  const patches: SlotPatch[] = [];
  const ready: SlotPatch[] = [];
  const opened: { queue: string; integration: string; sub: string; inc: string }[] = [];
  const queuesTouched: string[] = [];
  /** Redis holds what the routes say: what is the very same in both needs no look. */
  const written = have.hashes === undefined;
  /** What a hash of ours holds: as it was read, or else as the routes say. */
  const held = (key: string, said: Fields): Fields => have.hashes?.get(key) ?? said;
  /** Another generation is a successor's only if the hash is whole: a damaged one is mended, its progress kept. */
  const isMended = (key: string): boolean => have.hashes !== undefined && !isWhole(held(key, {}));

  for (const [queue, route] of Object.entries(want.queues)) {
    const q = queueKeys(tenant, queue);
    const old = Object.hasOwn(have.routes.queues, queue) ? have.routes.queues[queue] : undefined;
    const made = old === undefined || (old.gen !== route.gen && !isMended(q.meta));
    const ops: PatchOp[] = [];
    if (made && old !== undefined) {
      // A stream that was made again starts an empty queue: nothing of the old one may lead or hold it. Fence and epoch
      // stay, or a deposed controller or router could write here again.
      ops.push({ command: 'HDEL', key: q.meta, args: QUEUE_PROGRESS });
      ops.push(...[q.behind, q.wake, q.expired].map(key => ({ command: 'DEL' as const, key, args: [] })));
      ops.push(...expireAll(queueContents(queueKeys(tenant, queue, old.gen)), old.retentionMs));
    }
    ops.push(...hashOps(q.meta, held(q.meta, old === undefined ? {} : queueFields(old)), queueFields(route)));
    if (ops.length > 0) queuesTouched.push(queue);
    if (ops.length > 0) patches.push({ meta: q.meta, ops });
    if (!have.ready.has(q.meta) || made)
      ready.push({ meta: q.meta, ops: [{ command: 'HSET', key: q.meta, args: ['ready', '1'] }] });
  }

  for (const [integration, route] of Object.entries(want.integrations)) {
    const i = integrationKeys(integration);
    const old = have.routes.integrations[integration] ?? GONE;
    const known = old !== GONE;
    if (written && old === route && have.ready.has(i.meta)) continue;
    const ops: PatchOp[] = [];
    if (!known || held(i.meta, { state: old.state }).state !== route.state) {
      const since = route.state === 'active' ? ['since', route.sinceMs] : [];
      ops.push({ command: 'HSET', key: i.meta, args: ['state', route.state, ...since] });
    }
    for (const [sub, next] of Object.entries(route.subscriptions)) {
      const before = old.subscriptions[sub];
      if (written && before === next && old.state === route.state) continue;
      const key = i.sub(sub);
      const made = before === undefined || (before.inc !== next.inc && !isMended(key));
      if (made) {
        if (before !== undefined) {
          ops.push({ command: 'DEL', key, args: [] });
          // Nothing finds it any more, and nothing else would end it.
          const retentionMs =
            (want.queues[before.queue] ?? want.queues[next.queue])?.retentionMs ?? LONGEST_RETENTION_MS;
          ops.push(...expireAll(inboxContents(inboxKeys(integration, sub, before.inc)), retentionMs));
        }
        ops.push({ command: 'HSETNX', key, args: ['since', next.sinceMs] });
      } else if (
        before.onUnblock === 'skip' &&
        next.onUnblock === undefined &&
        next.route !== 'closed' &&
        !isMended(key)
      ) {
        // First of the changes: repeated after a crash as long as the pause is remembered. Also while it stays suspended:
        // what the Blocks kept back is left out, what comes from now on is not.
        ops.push({ command: 'HSET', key, args: ['skipTo', nowMs] });
      }
      const stands = before === undefined ? held(key, {}) : made ? {} : held(key, subscriptionFields(tenant, before));
      const changes = hashOps(key, stands, subscriptionFields(tenant, next));
      ops.push(...changes);
      const opens =
        (next.route === 'open' && before?.route !== 'open') ||
        (next.send === 'open' && before?.send !== 'open') ||
        (next.route !== 'closed' && old.state !== 'active' && route.state === 'active') ||
        (next.route === 'closed' && before !== undefined && before.route !== 'closed');
      // Nobody waits in a queue that is gone.
      const lives = Object.hasOwn(want.queues, next.queue);
      if (lives && (opens || (changes.length > 0 && next.send === 'open'))) {
        opened.push({ queue: next.queue, integration, sub, inc: next.inc });
      }
    }
    if (ops.length > 0) patches.push({ meta: i.meta, ops });
    if (!have.ready.has(i.meta))
      ready.push({ meta: i.meta, ops: [{ command: 'HSET', key: i.meta, args: ['ready', '1'] }] });
  }

  const ops: PatchOp[] = [];
  if (have.routes.payer !== want.payer) ops.push({ command: 'HSET', key: t.meta, args: ['payer', want.payer] });
  if (have.routes.plan !== want.plan) ops.push({ command: 'HSET', key: t.meta, args: ['plan', want.plan] });
  ops.push(...hashOps(t.keys, have.routes.keys, want.keys));
  const had = written ? withoutSame(have.routes, want) : have.routes;
  const has = written ? withoutSame(want, have.routes) : want;
  const [hadSubscribers, subscribers] = [subscribersOf(had), subscribersOf(has)];
  for (const queue of new Set([...Object.keys(hadSubscribers), ...Object.keys(subscribers)])) {
    ops.push(...hashOps(t.subs(queue), held(t.subs(queue), hadSubscribers[queue] ?? {}), subscribers[queue] ?? {}));
  }
  // What the index names and nobody knows is the sweep's.
  const index = hashOps(t.index, held(t.index, indexOf(had)), indexOf(has));
  if (ops.length > 0) patches.push({ meta: t.meta, ops });
  // Named before it is made: what a controller that dies in between leaves open is found, and closed, by the next one.
  const named = index.filter(({ command }) => command === 'HSET');
  if (named.length > 0) patches.unshift({ meta: t.meta, ops: named });
  if (!have.ready.has(t.meta))
    ready.push({ meta: t.meta, ops: [{ command: 'HSET', key: t.meta, args: ['ready', '1'] }] });
  return { patches, ready, opened, queuesTouched };
}

/**
 * Adds to `want` what Redis has and no object owns, closed: only the drain, or the owner's explicit Delete, removes it.
 * Where there is nothing to add, a part of it is what it was.
 */
export function keepUnowned(have: TenantRoutes, want: TenantRoutes): TenantRoutes {
  const queues: Record<string, QueueRoute> = {};
  for (const [queue, route] of Object.entries(have.queues)) queues[queue] = { ...route, state: 'closing' };
  const integrations: Record<string, IntegrationRoute> = { ...want.integrations };
  for (const [integration, old] of Object.entries(have.integrations)) {
    const next = want.integrations[integration];
    if (next === old) continue;
    const unowned = Object.entries(old.subscriptions).filter(([sub]) => next?.subscriptions[sub] === undefined);
    if (next !== undefined && unowned.length === 0) continue;
    const closed = unowned.map(([sub, route]) => [sub, closeRoute(route)] as const);
    const isClosed =
      next === undefined && old.state === 'closed' && closed.every(([, route], i) => route === unowned[i]?.[1]);
    integrations[integration] = isClosed
      ? old
      : {
          state: next?.state ?? 'closed',
          sinceMs: next?.sinceMs ?? old.sinceMs,
          subscriptions: { ...Object.fromEntries(closed), ...next?.subscriptions },
        };
  }
  return { ...want, queues: { ...queues, ...want.queues }, integrations };
}

/** The same object where it is closed. */
function closeRoute(route: SubscriptionRoute): SubscriptionRoute {
  const { onUnblock, ...rest } = route;
  if (onUnblock === undefined && rest.route === 'closed' && rest.send === 'held' && rest.endpoint === '') return route;
  return { ...rest, route: 'closed', send: 'held', endpoint: '' };
}
