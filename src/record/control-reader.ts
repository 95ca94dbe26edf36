import { LONGEST_RETENTION_MS } from '../core/routing/retention.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routing/routes.ts';
import type { RedisClient } from '../redis/client.ts';
import { integrationKeys, queueKeys, slotTag, tenantKeys } from '../redis/keys.ts';
import { inSlices, type Steps } from '../time/slices.ts';
import { type Fields, QUEUE_FIELDS, type StoredRoutes, SUBSCRIPTION_FIELDS } from './control-plan.ts';
import { readPages } from './hash-pages.ts';

/** The hashes, by key. Empty if the key doesn't exist. */
export type ReadHashes = (keys: readonly string[]) => Promise<ReadonlyMap<string, Fields>>;

/** The number of hashes read by each call. */
const HASHES_AT_ONCE = 50;
/** The number of fields that a call can read, as in `hashes.lua`. The hashes that don't fit are read by the next call. */
const FIELDS_AT_ONCE = 1_000;

/**
 * Splits the items into groups. Each group contains up to `most` items and is used for one script. In a Cluster, all
 * items of a group belong to the same slot.
 *
 * @param keyOf the key of an item
 */
export function partsOf<T>(
  redis: Pick<RedisClient, 'cluster'>,
  items: readonly T[],
  keyOf: (item: T) => string,
  most: number,
): T[][] {
  const groups = redis.cluster ? Map.groupBy(items, item => slotTag(keyOf(item))).values() : [items];
  const parts: T[][] = [];
  for (const group of groups) for (let at = 0; at < group.length; at += most) parts.push(group.slice(at, at + most));
  return parts;
}

/** @param pace awaited before each command, to limit the load of a full read */
export function createHashReader(redis: RedisClient, pace: () => Promise<void> = () => Promise.resolve()): ReadHashes {
  return async keys => {
    const hashes = new Map<string, Fields>();
    for (const part of partsOf(redis, keys, key => key, HASHES_AT_ONCE)) {
      for (let left = part; left.length > 0; ) {
        await pace();
        const replies = (await redis.run('hashes', left, [])) as (string[] | number)[];
        const later: string[] = [];
        for (const [i, key] of left.entries()) {
          const reply = replies[i] as string[] | number;
          if (typeof reply !== 'number') hashes.set(key, fieldsOf(reply));
          else if (reply <= FIELDS_AT_ONCE) later.push(key);
          // The index of a tenant can have 30,000 fields.
          else hashes.set(key, Object.fromEntries(await readPages(redis, key, pace)));
        }
        left = later;
      }
    }
    return hashes;
  };
}

function fieldsOf(flat: readonly string[]): Fields {
  const fields: Fields = {};
  for (let at = 0; at < flat.length; at += 2) fields[flat[at] as string] = flat[at + 1] as string;
  return fields;
}

/** All data of a tenant in Redis, by its name. */
interface Names {
  readonly queues: ReadonlySet<string>;
  /** integration → its subscriptions */
  readonly integrations: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Uses the tenant's index and previously known names because the index may be lost. */
function* namesOf(index: Fields, known: readonly TenantRoutes[]): Steps<Names> {
  const queues = new Set<string>();
  const integrations = new Map<string, Set<string>>();
  const of = (integration: string): Set<string> => {
    let subs = integrations.get(integration);
    if (subs === undefined) integrations.set(integration, (subs = new Set()));
    return subs;
  };
  for (const entry of Object.keys(index)) {
    yield;
    const [kind, name = '', sub = ''] = entry.split(':');
    if (kind === 'q') queues.add(name);
    else if (kind === 'i') of(name);
    else if (kind === 's') of(name).add(sub);
  }
  for (const routes of known) {
    for (const queue of Object.keys(routes.queues)) queues.add(queue);
    for (const [integration, { subscriptions }] of Object.entries(routes.integrations)) {
      yield;
      const subs = of(integration);
      for (const sub of Object.keys(subscriptions)) subs.add(sub);
    }
  }
  return { queues, integrations };
}

/** The result of reading the data of a tenant. */
export interface TenantReading {
  readonly stored: StoredRoutes;
  /** The key of the meta hash of each slot → the fence that it contains. */
  readonly fences: ReadonlyMap<string, number>;
}

/**
 * Reads the tenant routes. Damaged data is read as far as possible: incomplete queues and subscriptions are closed. The
 * actual data is available in `stored.hashes`. A tenant may have 10,000 subscriptions, so this is done in slices.
 *
 * @param known routes whose names should be read even if they are missing from the index of the tenant
 */
export async function readRoutes(
  read: ReadHashes,
  tenant: string,
  known: readonly TenantRoutes[] = [],
): Promise<TenantReading> {
  const t = tenantKeys(tenant);
  const own = await read([t.meta, t.keys, t.index]);
  const names = await inSlices(namesOf(own.get(t.index) ?? {}, known));
  const rest = await read(await inSlices(keysOf(tenant, names)));
  return inSlices(parseRoutes(tenant, names, key => own.get(key) ?? rest.get(key) ?? {}));
}

/** Returns the keys of the hashes for all names of a tenant. */
function* keysOf(tenant: string, { queues, integrations }: Names): Steps<string[]> {
  const keys: string[] = [];
  for (const queue of queues) {
    yield;
    keys.push(queueKeys(tenant, queue).meta, tenantKeys(tenant).subs(queue));
  }
  for (const [integration, subs] of integrations) {
    yield;
    const i = integrationKeys(integration);
    keys.push(i.meta);
    for (const sub of subs) keys.push(i.sub(sub));
  }
  return keys;
}

/** @param at returns a hash by its key */
function* parseRoutes(tenant: string, names: Names, at: (key: string) => Fields): Steps<TenantReading> {
  const t = tenantKeys(tenant);
  const hashes = new Map<string, Fields>([[t.index, at(t.index)]]);
  const fences = new Map<string, number>();
  const ready = new Set<string>();
  const note = (meta: string): Fields => {
    const fields = at(meta);
    fences.set(meta, Number(fields.fence ?? 0));
    if (fields.ready === '1') ready.add(meta);
    return fields;
  };

  const queues: Record<string, QueueRoute> = {};
  for (const queue of names.queues) {
    yield;
    const { meta } = queueKeys(tenant, queue);
    const fields = pick(note(meta), QUEUE_FIELDS);
    hashes.set(meta, fields).set(t.subs(queue), at(t.subs(queue)));
    const route = parseQueue(fields);
    if (route !== undefined) queues[queue] = route;
  }
  const integrations: Record<string, IntegrationRoute> = {};
  for (const [integration, subs] of names.integrations) {
    const i = integrationKeys(integration);
    const { state, since } = note(i.meta);
    hashes.set(i.meta, state === undefined ? {} : { state });
    const subscriptions: Record<string, SubscriptionRoute> = {};
    for (const sub of subs) {
      yield;
      const found = at(i.sub(sub));
      const fields = pick(found, SUBSCRIPTION_FIELDS);
      hashes.set(i.sub(sub), fields);
      const route = parseSubscription(fields, found.since);
      if (route !== undefined) subscriptions[sub] = route;
    }
    if (state === undefined && Object.keys(subscriptions).length === 0) continue;
    integrations[integration] = {
      state: state === 'active' || state === 'pending' ? state : 'closed',
      sinceMs: Number(since ?? 0),
      subscriptions,
    };
  }
  const { payer = '', plan = '', eventsPerSecond = '', storedBytes = '' } = note(t.meta);
  const routes = {
    tenant,
    payer,
    plan: plan as TenantRoutes['plan'],
    ...(eventsPerSecond === '' ? {} : { eventsPerSecond: Number(eventsPerSecond) }),
    ...(storedBytes === '' ? {} : { storedBytes: Number(storedBytes) }),
    keys: at(t.keys),
    queues,
    integrations,
  };
  return { stored: { routes, ready, hashes }, fences };
}

function pick(fields: Fields, names: readonly string[]): Fields {
  const picked: Fields = {};
  for (const name of names) if (fields[name] !== undefined) picked[name] = fields[name];
  return picked;
}

const NO_HEADERS: QueueRoute['contextHeaders'] = { eventType: [], groupKey: [], eventId: [], forward: [] };

function parseQueue(fields: Fields): QueueRoute | undefined {
  if (fields.gen === undefined) return undefined;
  return {
    gen: fields.gen,
    state: fields.state === 'open' ? 'open' : 'closing',
    retentionMs: Number(fields.retentionMs) || LONGEST_RETENTION_MS,
    maxBytes: Number(fields.maxBytes) || 0,
    source: fields.source ?? '',
    eventTypes: parseJson(fields.eventTypes, []),
    contextHeaders: parseJson(fields.contextHeaders, NO_HEADERS),
  };
}

function parseJson<T>(text: string | undefined, otherwise: T): T {
  try {
    return text === undefined ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

function parseSubscription(fields: Fields, since: string | undefined): SubscriptionRoute | undefined {
  const { inc, queue, gen, route, onUnblock } = fields;
  const [cap, maxPerSecond] = (fields.cap ?? '').split(' ').map(Number);
  if (inc === undefined || queue === undefined || gen === undefined) return undefined;
  return {
    inc,
    queue,
    gen,
    route: route === 'open' || route === 'paused' ? route : 'closed',
    ...(onUnblock === 'continue' || onUnblock === 'skip' ? { onUnblock } : {}),
    send: fields.send === 'open' ? 'open' : 'held',
    sinceMs: Number(since ?? 0),
    unordered: fields.unordered === '1',
    cap: cap || 1,
    ...(maxPerSecond === undefined ? {} : { maxPerSecond }),
    ...(fields.enabled === undefined ? {} : { enabledMs: Number(fields.enabled) }),
    endpoint: fields.endpoint ?? '',
  };
}
