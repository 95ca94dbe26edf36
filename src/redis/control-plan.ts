import { createHash } from 'node:crypto';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routes.ts';
import { integrationKeys, queueKeys, tenantKeys } from './keys.ts';

export type PatchCommand = 'HSET' | 'HSETNX' | 'HDEL' | 'ZADD' | 'ZREM' | 'SADD' | 'SREM' | 'DEL';
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
}

export interface RoutesPlan {
  /** In the order in which they must be written: queues, integrations, then the tenant. */
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

type Fields = Record<string, string>;

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

export function subscriptionFields(tenant: string, route: SubscriptionRoute): Fields {
  const fields: Fields = {
    inc: route.inc,
    tenant,
    queue: route.queue,
    gen: route.gen,
    route: route.route,
    send: route.send,
    cap: String(route.cap),
    ...(route.unordered ? { unordered: '1' } : {}),
    ...(route.endpoint === '' ? {} : { endpoint: route.endpoint }),
  };
  return { ...fields, cfgv: versionOf(fields) };
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
  'cap',
  'unordered',
  'endpoint',
  'cfgv',
];

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

/** Every name that the tenant has in Redis, so that what no object owns any more can be found again. */
function indexOf(routes: TenantRoutes): Fields {
  const index: Fields = {};
  for (const [queue, route] of Object.entries(routes.queues)) index[`q:${queue}`] = route.gen;
  for (const [integration, route] of Object.entries(routes.integrations)) {
    index[`i:${integration}`] = '';
    for (const [sub, { inc }] of Object.entries(route.subscriptions)) index[`s:${integration}:${sub}`] = inc;
  }
  return index;
}

/** Subscriptions per queue that the router asks: all that are not closed, covered ones too. */
function subscribersOf(routes: TenantRoutes): Record<string, Fields> {
  // Without a prototype: `constructor` is a good name for a queue.
  const byQueue: Record<string, Fields> = Object.create(null);
  for (const queue of Object.keys(routes.queues)) byQueue[queue] = {};
  for (const [integration, route] of Object.entries(routes.integrations)) {
    for (const [sub, { inc, queue, route: open }] of Object.entries(route.subscriptions)) {
      if (open === 'closed') continue;
      byQueue[queue] ??= {};
      (byQueue[queue] as Fields)[integration] = `${sub}.${inc}`;
    }
  }
  return byQueue;
}

const GONE: IntegrationRoute = { state: 'closed', sinceMs: 0, subscriptions: {} };

/**
 * What must be written so that Redis holds `want`, given what it holds: pure. Nothing that lies in a queue or an inbox is
 * ever removed here; a queue or subscription that no object wants any more is closed, and kept.
 */
export function planRoutes(have: StoredRoutes, wanted: TenantRoutes): RoutesPlan {
  const want = keepUnowned(have.routes, wanted);
  const { tenant } = want;
  const t = tenantKeys(tenant);
  const patches: SlotPatch[] = [];
  const ready: SlotPatch[] = [];
  const opened: { queue: string; integration: string; sub: string; inc: string }[] = [];
  const queuesTouched: string[] = [];

  for (const [queue, route] of Object.entries(want.queues)) {
    const q = queueKeys(tenant, queue);
    const old = Object.hasOwn(have.routes.queues, queue) ? have.routes.queues[queue] : undefined;
    const made = old === undefined || old.gen !== route.gen;
    const ops: PatchOp[] = [];
    if (made && old !== undefined) {
      // A stream that was made again starts an empty queue: nothing of the old one may lead or hold it. Fence and epoch
      // stay, or a deposed controller or router could write here again.
      ops.push({ command: 'HDEL', key: q.meta, args: QUEUE_PROGRESS });
      ops.push(...[q.behind, q.wake].map(key => ({ command: 'DEL' as const, key, args: [] })));
    }
    ops.push(...hashOps(q.meta, made ? {} : queueFields(old), queueFields(route)));
    if (ops.length > 0) queuesTouched.push(queue);
    if (ops.length > 0) patches.push({ meta: q.meta, ops });
    if (!have.ready.has(q.meta) || made)
      ready.push({ meta: q.meta, ops: [{ command: 'HSET', key: q.meta, args: ['ready', '1'] }] });
  }

  for (const [integration, route] of Object.entries(want.integrations)) {
    const i = integrationKeys(integration);
    const old = have.routes.integrations[integration] ?? GONE;
    const known = have.routes.integrations[integration] !== undefined;
    const ops: PatchOp[] = [];
    if (!known || old.state !== route.state) {
      const since = route.state === 'active' ? ['since', route.sinceMs] : [];
      ops.push({ command: 'HSET', key: i.meta, args: ['state', route.state, ...since] });
    }
    for (const [sub, next] of Object.entries(route.subscriptions)) {
      const before = old.subscriptions[sub];
      const made = before === undefined || before.inc !== next.inc;
      if (made) {
        if (before !== undefined) ops.push({ command: 'DEL', key: i.sub(sub), args: [] });
        ops.push({ command: 'HSETNX', key: i.sub(sub), args: ['since', next.sinceMs] });
      }
      const changes = hashOps(
        i.sub(sub),
        made ? {} : subscriptionFields(tenant, before),
        subscriptionFields(tenant, next),
      );
      ops.push(...changes);
      const opens =
        (next.route === 'open' && before?.route !== 'open') ||
        (next.send === 'open' && before?.send !== 'open') ||
        (next.route !== 'closed' && old.state !== 'active' && route.state === 'active') ||
        (next.route === 'closed' && before !== undefined && before.route !== 'closed');
      if (opens || (changes.length > 0 && next.send === 'open')) {
        opened.push({ queue: next.queue, integration, sub, inc: next.inc });
      }
    }
    if (ops.length > 0) patches.push({ meta: i.meta, ops });
    if (!have.ready.has(i.meta))
      ready.push({ meta: i.meta, ops: [{ command: 'HSET', key: i.meta, args: ['ready', '1'] }] });
  }

  const ops: PatchOp[] = [];
  if (have.routes.payer !== want.payer) ops.push({ command: 'HSET', key: t.meta, args: ['payer', want.payer] });
  ops.push(...hashOps(t.keys, have.routes.keys, want.keys));
  const [hadSubscribers, subscribers] = [subscribersOf(have.routes), subscribersOf(want)];
  for (const queue of new Set([...Object.keys(hadSubscribers), ...Object.keys(subscribers)])) {
    ops.push(...hashOps(t.subs(queue), hadSubscribers[queue] ?? {}, subscribers[queue] ?? {}));
  }
  ops.push(...hashOps(t.index, indexOf(have.routes), indexOf(want)));
  if (ops.length > 0) patches.push({ meta: t.meta, ops });
  if (!have.ready.has(t.meta))
    ready.push({ meta: t.meta, ops: [{ command: 'HSET', key: t.meta, args: ['ready', '1'] }] });
  return { patches, ready, opened, queuesTouched };
}

/** Adds to `want` what Redis has and no object owns, closed: only the drain, or the owner's explicit Delete, removes it. */
export function keepUnowned(have: TenantRoutes, want: TenantRoutes): TenantRoutes {
  const queues: Record<string, QueueRoute> = {};
  for (const [queue, route] of Object.entries(have.queues)) queues[queue] = { ...route, state: 'closing' };
  const integrations: Record<string, IntegrationRoute> = { ...want.integrations };
  for (const [integration, old] of Object.entries(have.integrations)) {
    const next = want.integrations[integration];
    const subscriptions: Record<string, SubscriptionRoute> = {};
    for (const [sub, route] of Object.entries(old.subscriptions)) {
      subscriptions[sub] = { ...route, route: 'closed', send: 'held', endpoint: '' };
    }
    integrations[integration] = {
      state: next?.state ?? 'closed',
      sinceMs: next?.sinceMs ?? old.sinceMs,
      subscriptions: { ...subscriptions, ...next?.subscriptions },
    };
  }
  return { ...want, queues: { ...queues, ...want.queues }, integrations };
}
