import { readBalance } from '../accounts/balance.ts';
import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { TenantRoutes } from '../core/routing/routes.ts';
import type { InboxRef } from '../plane/inbox-ref.ts';
import type { Argument, RedisClient } from '../redis/client.ts';
import { FORMAT, RedisFormatError, RedisInstanceError } from '../redis/format.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import type { SlotPatch, StoredRoutes } from './control-plan.ts';
import { createHashReader, readRoutes } from './control-reader.ts';
import { MAIL_SERVER_FIELD } from './mail-reader.ts';

/** There is a newer controller that is now the leader. This controller must stop immediately. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

export interface ClusterState {
  readonly uid: string | undefined;
  readonly ready: boolean;
  readonly epoch: number;
}

export interface DrainState {
  /**
   * The number of events that have not been routed to all of the subscriptions yet. If a stream does not have any
   * events, this is 0.
   */
  readonly unrouted: number;
  /** The number of open deliveries. If a stream does not have any events, this is 0. */
  readonly open: number;
}

/** A change to the routes of a tenant. */
export interface RoutesChange {
  readonly fence: number;
  readonly have: TenantRoutes;
  readonly want: TenantRoutes;
  /** Whether we know that Redis contains `have`. */
  readonly isKnown: boolean;
  /**
   * Returns all open group keys of each integration (`int_…`), and the time at which each of them was opened, in
   * milliseconds.
   */
  readonly openKeys: () => ReadonlyMap<string, readonly { readonly groupKey: string; readonly sinceMs: number }[]>;
}

/**
 * The controller's record of applied changes, and data that is not specific to a stream: accounts, keys, and state of
 * the installation. Every write is fenced.
 */
export interface ControlRecord {
  /**
   * Claims the fencing epoch. This should be called when the controller has become the leader. If this Redis belongs to
   * another cluster, its name is returned as `other`.
   *
   * @throws RedisFormatError if the data has another format
   * @throws RedisInstanceError if the data belongs to another installation in this cluster
   */
  readonly lead: (uid: string, transitions: number, nowMs: number) => Promise<{ epoch: number } | { other: string }>;
  readonly readCluster: () => Promise<ClusterState>;
  /** Marks the control state as complete, and notes for the facade whether there is a mail server. */
  readonly markClusterReady: (fence: number) => Promise<void>;
  /** Tells the other roles which root key the controller signs and encrypts with. @param rootKey its fingerprint */
  readonly publishRootKey: (fence: number, rootKey: string) => Promise<void>;
  /**
   * Raises the fence for all of the data of this tenant before it is read. This ensures that an older leader can't
   * write in between. The names in `known` will be read even if they are missing from the index of the tenant.
   */
  readonly readTenant: (tenant: string, fence: number, known?: readonly TenantRoutes[]) => Promise<StoredRoutes>;
  readonly patch: (fence: number, patches: readonly SlotPatch[]) => Promise<void>;
  /**
   * Writes the plan of an account. It is stored together with the counts of its tokens. If the plan has changed, this
   * returns true.
   */
  readonly setAccount: (fence: number, account: string, plan: string, includedTokens: number) => Promise<boolean>;
  /** This is undefined if the plan of the account is not in Redis. */
  readonly readBalance: (account: string) => ReturnType<typeof readBalance>;
  /** Records that a group key is open (`sinceMs`) or closed (null) for an integration; true when something changed. */
  readonly setActivation: (
    fence: number,
    integration: string,
    groupKey: string,
    sinceMs: number | null,
  ) => Promise<boolean>;
  /** group key → the time at which it was activated, for a single integration. */
  readonly readActivations: (integration: string) => Promise<ReadonlyMap<string, number>>;
  /** Adds the tenant to the list of tenants with control state. */
  readonly enlist: (fence: number, tenant: string) => Promise<void>;
  readonly forgetQueue: (fence: number, tenant: string, queue: string) => Promise<void>;
  readonly forgetInbox: (fence: number, tenant: string, inbox: InboxRef) => Promise<void>;
}

/** Used by the controller to access Redis. This includes the record and the parts of streams. */
export interface ControlStore extends Omit<ControlRecord, 'forgetQueue' | 'forgetInbox'> {
  /**
   * Writes a change to all affected parts of streams. You must call this before `patch` writes the change, and no
   * activation of this tenant may be written at the same time.
   */
  readonly applyParts: (change: RoutesChange) => Promise<void>;
  /**
   * Closes everything which is open in a part but is not included in these routes or in `openKeys`. It does not write
   * anything else. This is needed because a previous controller might have opened something without recording it. That
   * controller is no longer able to write to the parts. This must not run concurrently with writes to the tenant's
   * activations.
   */
  readonly closeParts: (fence: number, routes: TenantRoutes, openKeys: RoutesChange['openKeys']) => Promise<void>;
  /** The data that the data plane keeps for an endpoint which is not just working. */
  readonly readHealth: (inbox: InboxRef) => Promise<string | undefined>;
  readonly readDrain: (tenant: string, queue: string) => Promise<DrainState>;
  /** Removes the part of a stream, including everything it contains. */
  readonly dropQueue: (fence: number, tenant: string, queue: string, gen: string) => Promise<void>;
  /** Removes an inbox. If `keepMs` is set, its records can still be read for as long as their events are kept. */
  readonly dropInbox: (fence: number, tenant: string, inbox: InboxRef, keepMs: number) => Promise<void>;
}

/** The maximum number of commands in a patch. This limits the time that a script can take to a few milliseconds. */
const PATCH_OPS = 400;

type PatchSlot = (fence: number, meta: string, ops: SlotPatch['ops']) => Promise<void>;

function createPatchSlot(redis: RedisClient, instance: string): PatchSlot {
  // Redis may have lost its data after we called `lead`. In this case, we need to make sure that new data is not
  // mistaken for the data of another version.
  const marker: SlotPatch['ops'] = Object.entries({ format: FORMAT, instance }).map(field => ({
    command: 'HSETNX',
    key: CLUSTER_KEYS.meta,
    args: field,
  }));

  return async function patchSlot(fence, meta, wanted) {
    const ops = meta === CLUSTER_KEYS.meta ? [...marker, ...wanted] : wanted;
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
  };
}

function createActivationRecord(redis: RedisClient): Pick<ControlRecord, 'setActivation' | 'readActivations'> {
  return {
    async setActivation(fence, integration, groupKey, sinceMs) {
      const i = integrationKeys(integration);
      const answer = await redis.run('act', [i.meta, i.act], [fence, groupKey, sinceMs ?? '']);
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${i.meta}`);
      return answer === 'OK';
    },

    async readActivations(integration) {
      // We can't use an object here, because a group key can have any name.
      const flat = (await redis.run('fields', [integrationKeys(integration).act], [])) as string[];
      const activations = new Map<string, number>();
      for (let at = 0; at < flat.length; at += 2) activations.set(flat[at] as string, Number(flat[at + 1]));
      return activations;
    },
  };
}

function createForgetting(
  redis: RedisClient,
  patchSlot: PatchSlot,
): Pick<ControlRecord, 'forgetQueue' | 'forgetInbox'> {
  return {
    async forgetQueue(fence, tenant, queue) {
      const q = queueKeys(tenant, queue);
      const t = tenantKeys(tenant);
      await patchSlot(fence, q.meta, [{ command: 'UNLINK', key: q.meta, args: [] }]);
      await patchSlot(fence, t.meta, [
        { command: 'UNLINK', key: t.subs(queue), args: [] },
        { command: 'HDEL', key: t.index, args: [`q:${queue}`] },
      ]);
    },

    async forgetInbox(fence, tenant, { integration, sub }) {
      const i = integrationKeys(integration);
      const t = tenantKeys(tenant);
      const entry = `s:${integration}:${sub}`;
      // A Subscription can refer to anything. If it was never admitted, we must not write to a slot that does not
      // belong to it.
      const [known, hash] = await Promise.all([
        redis.call('hexists', t.index, entry),
        redis.call('exists', i.sub(sub)),
      ]);
      if (known === 0 && hash === 0) return;
      await patchSlot(fence, i.meta, [{ command: 'UNLINK', key: i.sub(sub), args: [] }]);
      await patchSlot(fence, t.meta, [{ command: 'HDEL', key: t.index, args: [entry] }]);
    },
  };
}

/**
 * @param chooseRootKey returns the fingerprint of the root key to sign and encrypt with. Called with that of the last
 * leader before the controller leads
 * @param instance name of the controller's installation
 * @param hasMailServer whether the controller sends invitations by email. If undefined, what was noted is kept
 */
export function createControlRecord(
  redis: RedisClient,
  chooseRootKey: (last: string | undefined) => string = () => '',
  instance = DEFAULT_INSTANCE,
  hasMailServer?: boolean,
): ControlRecord {
  const hgetall = redis.readHash;
  const readHashes = createHashReader(redis);
  const patchSlot = createPatchSlot(redis, instance);

  return {
    async lead(uid, transitions, nowMs) {
      const rootKey = chooseRootKey((await hgetall(CLUSTER_KEYS.meta)).rootKey);
      const args = [nowMs, uid, transitions, rootKey, FORMAT, instance];
      const [answer, value] = (await redis.run('lead', [CLUSTER_KEYS.meta], args)) as string[];
      if (answer === 'INSTANCE') throw new RedisInstanceError(value as string, instance);
      if (answer === 'FORMAT') throw new RedisFormatError(Number(value));
      return answer === 'OK' ? { epoch: Number(value) } : { other: value as string };
    },

    async readCluster() {
      const { uid, ready, epoch } = await hgetall(CLUSTER_KEYS.meta);
      // If the cluster is missing, the data was lost after `lead`, before it was marked as ready.
      return { uid, ready: ready === '1' && uid !== undefined, epoch: Number(epoch ?? 0) };
    },

    async markClusterReady(fence) {
      const mailServer = hasMailServer === undefined ? [] : [MAIL_SERVER_FIELD, hasMailServer ? '1' : '0'];
      const args = ['ready', '1', ...mailServer];
      await patchSlot(fence, CLUSTER_KEYS.meta, [{ command: 'HSET', key: CLUSTER_KEYS.meta, args }]);
    },

    async publishRootKey(fence, rootKey) {
      const ops = [{ command: 'HSET', key: CLUSTER_KEYS.meta, args: ['rootKey', rootKey] }] as const;
      await patchSlot(fence, CLUSTER_KEYS.meta, ops);
    },

    async readTenant(tenant, fence, known) {
      // This is read again after the fences have been raised. Until then, an older leader may have added something that
      // we don't know about.
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
      // If this is a new leader, we also need to do this for existing data. Otherwise, an older leader could change it.
      if (stands && have.fence === String(fence)) return false;
      await patchSlot(fence, key, [{ command: 'HSET', key, args: Object.entries(want).flat() }]);
      return !stands;
    },

    readBalance: account => readBalance(redis, account),
    ...createActivationRecord(redis),

    async enlist(fence, tenant) {
      if ((await redis.call('sismember', CLUSTER_KEYS.tenants, tenant)) === 1) return;
      await patchSlot(fence, CLUSTER_KEYS.meta, [{ command: 'SADD', key: CLUSTER_KEYS.tenants, args: [tenant] }]);
    },
    ...createForgetting(redis, patchSlot),
  };
}
