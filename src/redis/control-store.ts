import { randomUUID } from 'node:crypto';
import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { TenantRoutes } from '../core/routing/routes.ts';
import type { Argument, RedisClient } from './client.ts';
import type { SlotPatch, StoredRoutes } from './control-plan.ts';
import { createHashReader, readRoutes } from './control-reader.ts';
import { FORMAT, RedisFormatError, RedisInstanceError } from './format.ts';
import { type InboxRef, inboxMember } from './inbox-store.ts';
import { accountKeys, CLUSTER_KEYS, inboxContents, inboxKeys, integrationKeys, queueKeys, tenantKeys } from './keys.ts';
import { readBalance } from './ledger-store.ts';
import { wakeEntry } from './queue-store.ts';

/** A newer controller leads: this one must stop at once. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

export interface ClusterState {
  readonly uid: string | undefined;
  readonly ready: boolean;
  readonly epoch: number;
}

export interface DrainState {
  /** Events behind the router's cursor, and subscriptions that are behind it. None of a queue without events. */
  readonly unrouted: number;
  /** References that are still open in the inboxes. None of a queue without events: there is nothing left to send. */
  readonly open: number;
}

/** A change of a tenant's routes. */
export interface RoutesChange {
  readonly fence: number;
  readonly have: TenantRoutes;
  readonly want: TenantRoutes;
  /** Whether Redis is known to hold what `have` says. */
  readonly isKnown: boolean;
  /** Returns the open group keys of each integration (`int_…`), and when each was opened in milliseconds. */
  readonly openKeys: () => ReadonlyMap<string, readonly { readonly groupKey: string; readonly sinceMs: number }[]>;
}

/** The controller's side of Redis: routes, gates and keys. Everything that writes is fenced. */
export interface ControlStore {
  /**
   * Claims the fencing epoch after the lease was won; `other` names the cluster that this Redis belongs to.
   *
   * @throws RedisFormatError if the data was written by a newer version
   * @throws RedisInstanceError if the data was written by another installation in the cluster
   */
  readonly lead: (uid: string, transitions: number, nowMs: number) => Promise<{ epoch: number } | { other: string }>;
  readonly readCluster: () => Promise<ClusterState>;
  readonly markClusterReady: (fence: number) => Promise<void>;
  /**
   * Raises the fence of everything that the tenant has, then reads it: an older leader cannot write in between. What
   * `known` names is read even if the tenant's index has lost it.
   */
  readonly readTenant: (tenant: string, fence: number, known?: readonly TenantRoutes[]) => Promise<StoredRoutes>;
  readonly patch: (fence: number, patches: readonly SlotPatch[]) => Promise<void>;
  /**
   * Writes a change to the parts of streams, where events are kept in parts. Must be done before the change is written by
   * `patch`, and while no activation of the tenant is written.
   */
  readonly applyParts?: (change: RoutesChange) => Promise<void>;
  /** States an account's plan where its tokens are counted; true when something changed. */
  readonly setAccount: (fence: number, account: string, plan: string, includedTokens: number) => Promise<boolean>;
  /** What the data plane keeps of an endpoint that does not simply work. */
  readonly readHealth: (inbox: InboxRef) => Promise<string | undefined>;
  /** undefined while Redis does not know the account's plan. */
  readonly readBalance: (account: string) => ReturnType<typeof readBalance>;
  /** Opens (`sinceMs`) or closes (null) a group key where the gate is asked; true when something changed. */
  readonly setActivation: (
    fence: number,
    nowMs: number,
    integration: string,
    groupKey: string,
    sinceMs: number | null,
    inboxes: readonly InboxRef[],
  ) => Promise<boolean>;
  /** The same in the tenant's index of gates, which the router reads first. */
  readonly setGate: (
    fence: number,
    tenant: string,
    integration: string,
    groupKey: string,
    open: boolean,
  ) => Promise<void>;
  /** group key → since, of one integration. */
  readonly readActivations: (integration: string) => Promise<ReadonlyMap<string, number>>;
  /** `group key\0integration` of every open gate. */
  readonly readGates: (tenant: string) => Promise<ReadonlySet<string>>;
  /** Adds the tenant to the list of those that have control state. */
  readonly enlist: (fence: number, tenant: string) => Promise<void>;
  /** Asks the router to catch the subscriptions up, after they opened. Those that are not behind cost one look. */
  wake(fence: number, tenant: string, queue: string, inboxes: readonly InboxRef[]): Promise<void>;
  /** Subscriptions (`int/sub.inc`) that the cursor of the queue left behind. */
  readonly readBehind: (tenant: string, queue: string) => Promise<ReadonlySet<string>>;
  readonly readDrain: (tenant: string, queue: string) => Promise<DrainState>;
  /** Removes a queue and all that lies in it. */
  readonly dropQueue: (fence: number, tenant: string, queue: string, gen: string) => Promise<void>;
  /** Removes an inbox, or lets it end by itself after `keepMs`. */
  readonly dropInbox: (fence: number, tenant: string, inbox: InboxRef, keepMs: number) => Promise<void>;
}

/** Commands of one patch at most: keeps a script under a few milliseconds. */
const PATCH_OPS = 400;

/**
 * @param rootKey fingerprint of the controller's root key, which the other roles compare theirs with
 * @param instance name of the controller's installation
 */
export function createControlStore(redis: RedisClient, rootKey = '', instance = DEFAULT_INSTANCE): ControlStore {
  const hgetall = redis.readHash;
  const readHashes = createHashReader(redis);

  async function patchSlot(fence: number, meta: string, ops: SlotPatch['ops']): Promise<void> {
    for (let from = 0; from === 0 || from < ops.length; from += PATCH_OPS) {
      const keys = [meta];
      const args: Argument[] = [fence];
      for (const { command, key, args: rest } of ops.slice(from, from + PATCH_OPS)) {
        let index = keys.indexOf(key) + 1;
        if (index === 0) index = keys.push(key);
        args.push(command, index, rest.length, ...rest);
      }
      const answer = await redis.run('patch', keys, args);
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${meta}`);
    }
  }

  return {
    async lead(uid, transitions, nowMs) {
      const args = [nowMs, uid, transitions, rootKey, FORMAT, instance];
      const [answer, value] = (await redis.run('lead', [CLUSTER_KEYS.meta], args)) as string[];
      if (answer === 'INSTANCE') throw new RedisInstanceError(value as string, instance);
      if (answer === 'NEWER') throw new RedisFormatError(Number(value));
      return answer === 'OK' ? { epoch: Number(value) } : { other: value as string };
    },

    async readCluster() {
      const { uid, ready, epoch } = await hgetall(CLUSTER_KEYS.meta);
      return { uid, ready: ready === '1', epoch: Number(epoch ?? 0) };
    },

    async markClusterReady(fence) {
      await patchSlot(fence, CLUSTER_KEYS.meta, [{ command: 'HSET', key: CLUSTER_KEYS.meta, args: ['ready', '1'] }]);
    },

    async readTenant(tenant, fence, known) {
      // Again after the fences were raised: until then an older leader may have added what this one had not heard of.
      for (;;) {
        const { stored, fences } = await readRoutes(readHashes, tenant, known);
        const lower = [...fences].filter(([, had]) => had !== fence);
        if (lower.length === 0) return stored;
        await Promise.all(lower.map(([meta]) => patchSlot(fence, meta, [])));
      }
    },

    async patch(fence, patches) {
      for (const { meta, ops } of patches) await patchSlot(fence, meta, ops);
    },

    async setAccount(fence, account, plan, includedTokens) {
      const key = accountKeys(account).meta;
      const want = { plan, included: String(includedTokens) };
      const have = await hgetall(key);
      const stands = have.plan === want.plan && have.included === want.included;
      // Of a new leader also what stands already: an older one could change it otherwise.
      if (stands && have.fence === String(fence)) return false;
      await patchSlot(fence, key, [{ command: 'HSET', key, args: Object.entries(want).flat() }]);
      return !stands;
    },

    async readHealth({ integration, sub }) {
      return (
        ((await redis.call('hget', integrationKeys(integration).sub(sub), 'health')) as string | null) ?? undefined
      );
    },

    readBalance: account => readBalance(redis, account),

    async setActivation(fence, nowMs, integration, groupKey, sinceMs, inboxes) {
      const i = integrationKeys(integration);
      const keys = [i.meta, i.act];
      for (const inbox of inboxes) {
        const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
        keys.push(x.pending, x.due, x.tries, x.claims);
      }
      const answer = await redis.run('act', keys, [fence, nowMs, groupKey, sinceMs ?? '']);
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${i.meta}`);
      return answer === 'OK';
    },

    async setGate(fence, tenant, integration, groupKey, open) {
      const t = tenantKeys(tenant);
      const member = `${groupKey}\0${integration}`;
      const present = (await redis.call('zscore', t.gates, member)) !== null;
      if (present === open) return;
      await patchSlot(fence, t.meta, [
        open ? { command: 'ZADD', key: t.gates, args: [0, member] } : { command: 'ZREM', key: t.gates, args: [member] },
      ]);
    },

    async readActivations(integration) {
      // Not as an object: a group key may have any name.
      const flat = (await redis.run('fields', [integrationKeys(integration).act], [])) as string[];
      const activations = new Map<string, number>();
      for (let at = 0; at < flat.length; at += 2) activations.set(flat[at] as string, Number(flat[at + 1]));
      return activations;
    },

    async readGates(tenant) {
      return new Set((await redis.call('zrange', tenantKeys(tenant).gates, 0, -1)) as string[]);
    },

    async enlist(fence, tenant) {
      if ((await redis.call('sismember', CLUSTER_KEYS.tenants, tenant)) === 1) return;
      await patchSlot(fence, CLUSTER_KEYS.meta, [{ command: 'SADD', key: CLUSTER_KEYS.tenants, args: [tenant] }]);
    },

    async wake(fence, tenant, queue, inboxes) {
      const q = queueKeys(tenant, queue);
      const args = inboxes.map(inbox => wakeEntry(inboxMember(inbox), randomUUID().slice(0, 8)));
      for (let at = 0; at < args.length; at += 500) {
        await patchSlot(fence, q.meta, [{ command: 'SADD', key: q.wake, args: args.slice(at, at + 500) }]);
      }
    },

    async readBehind(tenant, queue) {
      return new Set((await redis.call('hkeys', queueKeys(tenant, queue).behind)) as string[]);
    },

    async readDrain(tenant, queue) {
      const meta = await hgetall(queueKeys(tenant, queue).meta);
      const q = queueKeys(tenant, queue, meta.gen);
      const [events, behind, next, subscribers] = await Promise.all([
        redis.call('xlen', q.events),
        redis.call('hlen', q.behind),
        redis.call('xrange', q.events, `(${meta.cur ?? '0-0'}`, '+', 'COUNT', 1),
        hgetall(tenantKeys(tenant).subs(queue)),
      ]);
      // Retention moves the position of who cannot be routed to, but never takes it away; nor does it end a test event. Of a
      // queue whose generation is lost nobody knows the events.
      if (meta.gen !== undefined && events === 0) return { unrouted: 0, open: 0 };
      const open = await Promise.all(
        Object.entries(subscribers).map(async ([integration, subInc]) => {
          const [sub, inc] = subInc.split('.') as [string, string];
          return Number(await redis.call('zcard', inboxKeys(integration, sub, inc).pending));
        }),
      );
      return { unrouted: Number(behind) + (next as unknown[]).length, open: open.reduce((a, b) => a + b, 0) };
    },

    async dropQueue(fence, tenant, queue, gen) {
      const q = queueKeys(tenant, queue, gen);
      const t = tenantKeys(tenant);
      const keys = [q.events, q.bodies, q.behind, q.wake, q.expired, q.meta];
      const payer = (await redis.call('hget', t.meta, 'payer')) as string | null;
      await patchSlot(
        fence,
        q.meta,
        keys.map(key => ({ command: 'UNLINK', key, args: [] })),
      );
      await patchSlot(fence, t.meta, [
        { command: 'UNLINK', key: t.subs(queue), args: [] },
        { command: 'HDEL', key: t.index, args: [`q:${queue}`] },
      ]);
      if (payer === null || payer === '') return;
      const a = accountKeys(payer);
      const reserved = [a.hold, a.holder, a.short];
      await patchSlot(
        fence,
        a.meta,
        reserved.map(key => ({ command: 'HDEL', key, args: [`${tenant}:${queue}`] })),
      );
    },

    async dropInbox(fence, tenant, inbox, keepMs) {
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const i = integrationKeys(inbox.integration);
      const t = tenantKeys(tenant);
      const keys = inboxContents(x);
      const entry = `s:${inbox.integration}:${inbox.sub}`;
      // A Subscription may name anything: for one that was never admitted nothing is written in a slot that is not its own.
      const [known, hash, lies] = await Promise.all([
        redis.call('hexists', t.index, entry),
        redis.call('exists', i.sub(inbox.sub)),
        redis.call('exists', x.log),
      ]);
      if (known === 0 && hash === 0 && lies === 0) return;
      // The subscription's own hash goes at once: one that is made again under the same name would end with it.
      const gone = keepMs === 0 ? [...keys, i.sub(inbox.sub)] : [i.sub(inbox.sub)];
      const ops = gone.map(key => ({ command: 'UNLINK' as const, key, args: [] }));
      await patchSlot(fence, i.meta, ops);
      if (keepMs > 0) await Promise.all(keys.map(key => redis.call('pexpire', key, keepMs)));
      await patchSlot(fence, t.meta, [{ command: 'HDEL', key: t.index, args: [entry] }]);
    },
  };
}
